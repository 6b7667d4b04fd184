"""How good an encoder is."""
