"""Visits of a phone to its server: when they are made, and their outcomes."""
