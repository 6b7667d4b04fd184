-- Answers to a step may be kept while the next one is open.
ALTER TABLE answers ADD COLUMN number integer;
UPDATE answers SET number = phases.number FROM phases WHERE phases.phase = answers.phase;
DELETE FROM answers WHERE number IS NULL;
ALTER TABLE answers ALTER number SET NOT NULL,
    DROP CONSTRAINT answers_pkey, ADD PRIMARY KEY (phase, number, phone);
