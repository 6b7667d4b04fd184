"""The sub-commands of `earshot` that simulations bring."""
