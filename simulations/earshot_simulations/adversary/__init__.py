"""An adversary among the simulated phones: the phones it controls, their attacks, its success."""
