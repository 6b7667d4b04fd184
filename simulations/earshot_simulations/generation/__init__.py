"""Generators of sound, from a budget to audible samples, and the quality of their samples."""
