"""The helper of sums by two operators, run by another organization than the server."""
