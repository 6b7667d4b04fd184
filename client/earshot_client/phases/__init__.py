"""What a phone puts into a phase, and what it keeps of its result: a file for each kind."""
