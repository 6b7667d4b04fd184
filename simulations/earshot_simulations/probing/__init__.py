"""Measures of the quality of an encoder."""
