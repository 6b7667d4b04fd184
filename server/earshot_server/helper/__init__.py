"""The helper of sums by two operators, run by an organization other than the server's."""
