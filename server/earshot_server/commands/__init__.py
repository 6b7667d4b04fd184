"""The operators' sub-commands of `earshot`."""
