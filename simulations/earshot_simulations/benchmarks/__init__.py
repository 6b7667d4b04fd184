"""Benchmarks, each of which measures a peer and the physical floor in the same run."""
