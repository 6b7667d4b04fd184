"""Sweeps of many simulated phases, each kept as it finishes, and their joint results."""
