"""A kind of phase added from outside: one file a side."""
