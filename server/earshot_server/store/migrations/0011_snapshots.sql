-- Snapshots apart from phases, so that backups can leave them out: the leader's noise of a sum that
-- is under way is in them, and no restored server goes on with one.
CREATE TABLE snapshots (
    phase bytea PRIMARY KEY,
    snapshot bytea NOT NULL
);

-- Ciphertexts do not compress.
ALTER TABLE snapshots ALTER snapshot SET STORAGE EXTERNAL;

INSERT INTO snapshots SELECT phase, snapshot FROM phases WHERE snapshot IS NOT NULL;
ALTER TABLE phases DROP snapshot;
