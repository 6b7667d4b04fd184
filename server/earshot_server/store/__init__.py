"""Where a coordinator keeps a phase."""
