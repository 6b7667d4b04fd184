"""Sweeps of many simulated phases, each saved as it finishes, and their joint results."""
