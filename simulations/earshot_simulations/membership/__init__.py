"""Black-box attacks on generators, which infer training records from samples alone."""
