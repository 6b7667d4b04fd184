"""Engines that run simulated phones, and summations of their inputs."""
