"""Operators' dashboard: pages drawn on the server, that load nothing from elsewhere."""
