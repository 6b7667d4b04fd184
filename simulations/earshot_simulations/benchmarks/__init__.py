"""Benchmarks, each of which also measures a peer and the physical floor in the same run."""
