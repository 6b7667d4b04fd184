"""Phases computed for all phones at once, for the studies that choose the default settings."""
