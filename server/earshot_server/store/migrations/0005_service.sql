-- Readiness writes here: one row, to see whether anything can be written.
CREATE TABLE readiness (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    written double precision NOT NULL
);

-- Keyed hashes of the files with which this database is served, never what is in them.
CREATE TABLE credentials (
    file text PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32)
);
