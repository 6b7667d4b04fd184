"""Whole learning phases over simulated phones on one machine."""
