"""Generators of sound: spectrograms, networks, training with and without privacy, checkpoints."""
