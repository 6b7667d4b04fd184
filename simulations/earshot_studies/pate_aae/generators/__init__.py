"""Generators of sound: its spectrograms and back, networks, private training, published files."""
