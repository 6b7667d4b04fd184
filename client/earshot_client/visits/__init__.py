"""When a phone visits its server, and what came of it."""
