"""A phone's contributions to phases, and what it keeps of their results: a file for each kind."""
