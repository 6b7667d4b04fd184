-- A phase whose helper gave no answer, and when it is asked again.
CREATE TABLE errands (
    phase bytea PRIMARY KEY,
    attempts integer NOT NULL,
    reason text NOT NULL,  -- the name of the trouble
    next_try double precision NOT NULL
);
