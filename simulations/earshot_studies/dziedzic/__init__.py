"""Private multi-winner voting (Dziedzic et al., PoPETs 2023)."""
