"""What a phone keeps: one interface, encrypted in a file or in memory for simulations."""
