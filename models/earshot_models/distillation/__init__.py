"""Distillation from a larger encoder, without labels; only the student is shipped."""
