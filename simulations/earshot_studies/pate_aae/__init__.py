"""PATE-AAE (Yang et al., Interspeech 2021)."""
