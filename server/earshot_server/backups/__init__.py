"""Backups of a server: the file, the database's rows, and what restoring must invalidate."""
