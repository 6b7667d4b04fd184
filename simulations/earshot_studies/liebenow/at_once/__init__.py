"""Studies of many phases at once, by which the default settings are chosen."""
