-- A phase that a driver could not move on, and when it is tried again. A row is written before each
-- try and deleted after a good one, so that a driver which dies in the middle leaves it behind.
CREATE TABLE troubles (
    phase bytea PRIMARY KEY,
    attempts integer NOT NULL,
    reason text NOT NULL,  -- the name of an error; empty during the first try
    next_try double precision NOT NULL
);

-- When each driver last began to look at everything.
CREATE TABLE drivers (
    owner text PRIMARY KEY,
    turned double precision NOT NULL
);

-- What is counted over all drivers, for good.
CREATE TABLE tallies (
    name text PRIMARY KEY,
    count bigint NOT NULL
);

-- When the try after so many is made: after 5, 10, 20, … seconds, and never more than an hour.
CREATE FUNCTION next_try_after(attempts integer) RETURNS double precision LANGUAGE sql VOLATILE
    AS $$ SELECT seconds_now() + least(3600, 5 * power(2, least(attempts, 20) - 1)) $$;
