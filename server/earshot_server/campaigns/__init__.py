"""Campaigns: weekly counts of contacts over a year, planned before anything starts."""
