"""Taggers: networks that name all sounds of a clip, and their training.

The recipe is from Muschiol (2021), sections 4.4 and 5.1, with a network that trains on one core.
"""
