"""What releases cost together, by the library dp-accounting: a tighter view than a phone's."""
