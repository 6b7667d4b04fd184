"""Computation of global centroids from what phones publish."""
