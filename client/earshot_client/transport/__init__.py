"""How a phone reaches a server: one interface, and HTTP."""
