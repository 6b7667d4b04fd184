"""A simulated learning phase: its settings, its run, its scores and its report."""
