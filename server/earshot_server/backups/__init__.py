"""Backups of a server: the file, PostgreSQL's programs, and the past state that comes back."""
