"""Several sounds at once: seconds of real sound, mixed, and ensembles that name the labels in them.

Mixtures for teachers, for queries and for tests are made of different recordings.
"""
