"""Distillation from a larger encoder: it needs no labels, and the teacher is not shipped."""
