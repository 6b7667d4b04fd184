"""A simulated phase: its settings, its run, its scores and its report."""
