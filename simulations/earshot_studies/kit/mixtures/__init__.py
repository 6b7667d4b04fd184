"""Several sounds at once: seconds of real sound, mixed, and ensembles that name what is in them.

What is mixed for teachers, for queries and for tests stems from recordings of its own.
"""
