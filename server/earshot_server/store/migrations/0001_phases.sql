-- Times are seconds since 1970 on this database's clock, as everywhere in the protocol.
CREATE FUNCTION seconds_now() RETURNS double precision LANGUAGE sql VOLATILE
    AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

-- What PhaseStore keeps: the present step of each phase.
CREATE TABLE phases (
    phase bytea PRIMARY KEY CHECK (octet_length(phase) = 16),
    position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    number integer NOT NULL,
    step text NOT NULL,
    deadline double precision NOT NULL,
    expected integer NOT NULL,
    common bytea NOT NULL,
    sum bytea NOT NULL,
    over boolean NOT NULL,
    wait double precision NOT NULL,
    closed boolean NOT NULL DEFAULT false,
    snapshot bytea,  -- null once it is purged
    finished double precision
);

-- The present step's tasks and answers. They are only written under a lock on their phase's row,
-- so that a foreign key would only cost time.
CREATE TABLE tasks (
    phase bytea NOT NULL,
    phone bigint NOT NULL,
    task bytea NOT NULL,
    PRIMARY KEY (phase, phone)
);

CREATE TABLE answers (
    phase bytea NOT NULL,
    phone bigint NOT NULL,
    arrived bigint GENERATED ALWAYS AS IDENTITY,
    answer bytea NOT NULL,
    PRIMARY KEY (phase, phone)
);

-- Ciphertexts do not compress, and whole tables of them go at the end of every step.
ALTER TABLE phases ALTER snapshot SET STORAGE EXTERNAL;
ALTER TABLE tasks ALTER task SET STORAGE EXTERNAL;
ALTER TABLE answers ALTER answer SET STORAGE EXTERNAL;

CREATE TABLE steps (
    phase bytea NOT NULL REFERENCES phases,
    number integer NOT NULL,
    step text NOT NULL,
    expected integer NOT NULL,
    answered integer NOT NULL DEFAULT 0,
    opened double precision NOT NULL DEFAULT seconds_now(),
    closed double precision,
    PRIMARY KEY (phase, number)
);
