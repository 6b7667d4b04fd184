"""Mixtures of mel powers, and ensembles of taggers, in place of those of Muschiol (2021)."""
