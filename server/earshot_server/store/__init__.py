"""Stores in which a coordinator keeps a phase."""
