"""A phone's stores: one interface, encrypted in a file or in memory for simulations."""
