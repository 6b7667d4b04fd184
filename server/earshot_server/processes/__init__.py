"""Processes of a server: supervisor, web, driver and an embedded PostgreSQL."""
