"""What releases cost together: as phones count it, and by the library dp-accounting."""
