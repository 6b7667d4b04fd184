"""Processes of a server: supervisor, web server, driver, and an embedded PostgreSQL."""
