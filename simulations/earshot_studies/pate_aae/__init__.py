"""PATE-AAE (Yang et al., Interspeech 2021), and attacks on generators."""
