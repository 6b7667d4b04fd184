"""An adversary among the simulated phones: its phones, their attacks, and its success."""
