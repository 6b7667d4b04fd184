"""Taggers of urban sound (Muschiol 2021)."""
