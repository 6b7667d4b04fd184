-- Browsers in which an operator has signed in. The secret is the browser's cookie; only its hash is
-- here. A session holds as long as the token that began it: a rotated token is nobody's.
CREATE TABLE sessions (
    secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
    token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    ends double precision NOT NULL
);
