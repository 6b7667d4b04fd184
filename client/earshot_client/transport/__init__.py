"""A phone's line to a server: one interface, and HTTP."""
