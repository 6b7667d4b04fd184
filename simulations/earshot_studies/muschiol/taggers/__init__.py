"""Muschiol (2021) on available sound: mixtures of mel powers, ensembles of taggers, students."""
