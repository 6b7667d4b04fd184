"""Personalizing PATE (Mühl 2021)."""
