"""Sub-commands of `earshot` that run on a phone."""
