"""The server: coordinates phases and computes results from the phones' answers."""
