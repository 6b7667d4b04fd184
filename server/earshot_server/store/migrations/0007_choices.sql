-- Per label of a phase, what polls offer for it (MessagePack); NULL: every label is its own choice.
ALTER TABLE gatherings ADD choices bytea;
