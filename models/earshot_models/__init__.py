"""Audio data sets and the encoders that are fitted on them."""
