"""An adversary among the simulated phones: who it controls, what they do, what comes of it."""
