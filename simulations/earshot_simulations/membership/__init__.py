"""Black-box attacks on generators: whether a record was learned from, told from samples alone."""
