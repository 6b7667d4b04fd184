"""A labelling phase over simulated phones, and the accuracy of its labels."""
