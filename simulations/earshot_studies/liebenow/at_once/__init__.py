"""Phases vectorized over all phones, for the studies that choose default settings."""
