"""Where a coordinator keeps a learning phase."""
