"""Joint privacy cost of releases: as phones count it, and by the library dp-accounting."""
