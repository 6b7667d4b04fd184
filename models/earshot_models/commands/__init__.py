"""Sub-commands of `earshot` that train."""
