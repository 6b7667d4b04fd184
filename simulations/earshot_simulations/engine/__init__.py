"""Engines that run simulated phones, and the summations that add up their inputs."""
