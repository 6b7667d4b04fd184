"""What a few phones can do to names and to counts by the vectors that they send."""
