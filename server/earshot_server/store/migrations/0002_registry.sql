CREATE TABLE phones (
    phone bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_key bytea NOT NULL UNIQUE CHECK (octet_length(public_key) = 32),
    invitation bytea NOT NULL,
    enrolled double precision NOT NULL DEFAULT seconds_now(),
    told bytea  -- the newest published result that this phone was told
);

CREATE TABLE invitations (
    invitation bytea PRIMARY KEY,
    used integer NOT NULL
);

CREATE TABLE gatherings (
    phase bytea PRIMARY KEY CHECK (octet_length(phase) = 16),
    position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    parameters bytea NOT NULL,
    kind text NOT NULL,
    wanted integer NOT NULL,
    least integer NOT NULL,
    until double precision NOT NULL,
    joined integer NOT NULL DEFAULT 0 CHECK (joined <= wanted),
    created double precision NOT NULL DEFAULT seconds_now(),
    ended double precision,
    failure text
);

CREATE TABLE members (
    phase bytea NOT NULL REFERENCES gatherings,
    phone bigint NOT NULL REFERENCES phones,
    index bigint NOT NULL,
    PRIMARY KEY (phase, phone),
    UNIQUE (phase, index)
);
CREATE INDEX members_of_phone ON members (phone);

CREATE TABLE leases (
    phase bytea PRIMARY KEY,
    owner text NOT NULL,
    expires double precision NOT NULL
);
