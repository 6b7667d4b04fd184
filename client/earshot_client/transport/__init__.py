"""A phone's transport to a server: the interface, and HTTP."""
