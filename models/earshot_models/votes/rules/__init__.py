"""Rules by which answers come from the votes of teachers, and who wins by a curator."""
