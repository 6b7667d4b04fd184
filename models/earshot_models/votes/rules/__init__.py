"""Rules that turn votes of teachers into answers."""
