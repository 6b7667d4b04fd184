"""Many simulated phases, each kept as it finishes, and what they say together."""
