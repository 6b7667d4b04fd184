"""`earshot reproduce`."""
