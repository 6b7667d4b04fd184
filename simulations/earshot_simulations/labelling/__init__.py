"""A labelling phase over simulated phones, and how much of its labels is right."""
