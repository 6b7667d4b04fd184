"""Backups of a server: the file, the database's rows, and the past state that comes back."""
