"""Taggers: networks that name everything that sounds in a clip, and how they are trained.

The recipe is that of Muschiol (2021), sections 4.4 and 5.1, with a network that trains on one core.
"""
