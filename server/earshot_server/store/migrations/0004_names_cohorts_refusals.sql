-- What an operator calls a phase, and whose phones it gathers: none named means all.
ALTER TABLE gatherings
    ADD name text NOT NULL DEFAULT '',
    ADD cohorts text[] NOT NULL DEFAULT '{}';
ALTER TABLE phones ADD cohort text NOT NULL DEFAULT '';

-- How many phones have said by which rule they refuse a phase. Which phone said which is not kept:
-- only that it has said something, so that none is counted twice.
CREATE TABLE refusals (
    phase bytea NOT NULL REFERENCES gatherings,
    rule text NOT NULL,
    phones integer NOT NULL,
    PRIMARY KEY (phase, rule)
);
ALTER TABLE members ADD refused boolean NOT NULL DEFAULT false;
