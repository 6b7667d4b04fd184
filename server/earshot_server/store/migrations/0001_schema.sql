-- All times are seconds since 1970 on this database's clock.
CREATE FUNCTION seconds_now() RETURNS double precision LANGUAGE sql VOLATILE
    AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

-- The present step of each phase (PhaseStore).
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
    finished double precision
);

-- Snapshots are separate from phases, so that backups can leave them out: they contain the leader's
-- noise of a sum under way, and a restored server continues no phase. They are purged in time.
CREATE TABLE snapshots (
    phase bytea PRIMARY KEY,
    snapshot bytea NOT NULL
);

-- The present step's tasks and answers; answers may be kept while the next step is open. They are
-- written only under a lock on their phase's row, so a foreign key would only cost time.
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
    number integer NOT NULL,
    PRIMARY KEY (phase, number, phone)
);

-- Ciphertexts do not compress, and all of a phase's are deleted at the end of every step.
ALTER TABLE snapshots ALTER snapshot SET STORAGE EXTERNAL;
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

CREATE TABLE phones (
    phone bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_key bytea NOT NULL UNIQUE CHECK (octet_length(public_key) = 32),
    invitation bytea NOT NULL,
    enrolled double precision NOT NULL DEFAULT seconds_now(),
    cohort text NOT NULL DEFAULT ''
);

-- How many phones have enrolled with each attestation, an invitation code or another.
CREATE TABLE invitations (
    invitation bytea PRIMARY KEY,
    used integer NOT NULL
);

-- The invitation codes that were signed. A code cannot be made from its row: that takes the key.
CREATE TABLE invitation_codes (
    invitation bytea PRIMARY KEY CHECK (octet_length(invitation) = 16),
    name text NOT NULL UNIQUE,
    uses integer NOT NULL,
    cohort text NOT NULL,
    made double precision NOT NULL DEFAULT seconds_now(),
    expires double precision NOT NULL,
    revoked double precision
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
    failure text,
    name text NOT NULL,  -- for people; empty for none
    cohorts text[] NOT NULL,  -- cohorts whose phones may join; empty for all
    choices bytea NOT NULL  -- choices that polls offer, per label (MessagePack)
);

CREATE TABLE members (
    phase bytea NOT NULL REFERENCES gatherings,
    phone bigint NOT NULL REFERENCES phones,
    index bigint NOT NULL,
    refused boolean NOT NULL DEFAULT false,
    PRIMARY KEY (phase, phone),
    UNIQUE (phase, index)
);
CREATE INDEX members_of_phone ON members (phone);

-- Number of phones that reported a refusal of a phase, by rule. A phone's rule is not stored, only
-- that it has reported one (members.refused), so that none is counted twice.
CREATE TABLE refusals (
    phase bytea NOT NULL REFERENCES gatherings,
    rule text NOT NULL,
    phones integer NOT NULL,
    PRIMARY KEY (phase, rule)
);

CREATE TABLE leases (
    phase bytea PRIMARY KEY,
    owner text NOT NULL,
    expires double precision NOT NULL
);

-- Phases that a driver could not move on, and when they are tried again. A row is written before
-- each try and deleted after success, so that a driver which dies during a try leaves it behind.
CREATE TABLE troubles (
    phase bytea PRIMARY KEY,
    attempts integer NOT NULL,
    reason text NOT NULL,  -- the name of an error; empty during the first try
    next_try double precision NOT NULL
);

-- Phases whose helper gave no answer, and when it is asked again.
CREATE TABLE errands (
    phase bytea PRIMARY KEY,
    attempts integer NOT NULL,
    reason text NOT NULL,  -- the name of the trouble
    next_try double precision NOT NULL
);

-- Time of the next try after this many: in 5, 10, 20, … seconds, at most an hour.
CREATE FUNCTION next_try_after(attempts integer) RETURNS double precision LANGUAGE sql VOLATILE
    AS $$ SELECT seconds_now() + least(3600, 5 * power(2, least(attempts, 20) - 1)) $$;

-- Time of each driver's last turn.
CREATE TABLE drivers (
    owner text PRIMARY KEY,
    turned double precision NOT NULL
);

-- Counters of all drivers together, never reset.
CREATE TABLE tallies (
    name text PRIMARY KEY,
    count bigint NOT NULL
);

-- Campaigns, whose phases the drivers open. Every statement that decides about one holds an advisory
-- lock, so that none sees half of another's decision.
CREATE TABLE campaigns (
    campaign bytea PRIMARY KEY CHECK (octet_length(campaign) = 32),  -- digest of the plan
    position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    plan bytea NOT NULL,  -- as it was at the start (MessagePack)
    discovery bytea NOT NULL,  -- parameters of its discoveries or nil, likewise
    started double precision NOT NULL DEFAULT seconds_now(),
    operator text NOT NULL,  -- who started it
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'stopped')),
    reason text NOT NULL DEFAULT '',  -- why it is paused or stopped
    until date,  -- day on which the campaign that follows takes over
    restored double precision  -- when the server was last restored
);

-- Attempts at a campaign's phases.
CREATE TABLE campaign_phases (
    campaign bytea NOT NULL REFERENCES campaigns,
    kind text NOT NULL,
    number integer NOT NULL,
    attempt integer NOT NULL,
    phase bytea NOT NULL UNIQUE REFERENCES gatherings,
    enrolled integer NOT NULL,  -- phones of its cohorts when it opened
    map bytea,  -- discovery that names unlabelled contacts
    PRIMARY KEY (campaign, kind, number, attempt)
);

-- Phases that open no more, as it is too late. They are noted, so that a clock set back opens none.
CREATE TABLE missed_phases (
    campaign bytea NOT NULL REFERENCES campaigns,
    kind text NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (campaign, kind, number)
);

-- One row, which the readiness check writes.
CREATE TABLE readiness (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    written double precision NOT NULL
);

-- Keyed hashes of the credential files with which this database is served.
CREATE TABLE credentials (
    file text PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32)
);

CREATE TABLE operators (
    name text PRIMARY KEY,
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    created double precision NOT NULL DEFAULT seconds_now()
);

-- Browsers in which an operator has signed in. The secret is in the browser's cookie; only its hash
-- is stored. A session is valid no longer than the token that began it.
CREATE TABLE sessions (
    secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
    token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    ends double precision NOT NULL
);

-- Audit log, written in the transaction of each action. It contains no secret and no phone's key.
CREATE TABLE audit (
    entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL DEFAULT seconds_now(),
    operator text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only added to';
END $$;
CREATE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
