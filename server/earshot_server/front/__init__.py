"""Front door: slow, silent or endless connections occupy no threads."""
