"""Operators' dashboard: read-only pages, drawn on the server, that load nothing from elsewhere."""
