"""Data sets of recordings, each read in the layout in which it is published."""
