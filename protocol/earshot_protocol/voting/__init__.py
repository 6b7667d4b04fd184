"""Ballots, and the secure sums that add them up with noise."""
