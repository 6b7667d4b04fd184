"""Stores of phases, and the database of the server."""
