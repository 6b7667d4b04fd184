"""Scalable private learning with PATE (Papernot et al., ICLR 2018)."""
