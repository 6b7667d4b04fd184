"""Papers redone: their tables and figures, from data that you have."""
