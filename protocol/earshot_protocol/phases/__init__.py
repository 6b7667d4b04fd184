"""Phases: their parameters, their plans, and a file for each kind."""
