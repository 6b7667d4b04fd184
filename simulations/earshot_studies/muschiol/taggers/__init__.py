"""Muschiol (2021) on sound at hand: mixtures of mel powers, ensembles of taggers, students."""
