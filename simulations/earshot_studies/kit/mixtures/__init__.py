"""Mixtures of several sounds in one second, and ensembles of taggers for them.

Mixtures for teachers, queries and tests are made of different recordings.
"""
