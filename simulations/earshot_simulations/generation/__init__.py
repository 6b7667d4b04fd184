"""Generators of sound from a budget to what one can listen to, and how good their samples are."""
