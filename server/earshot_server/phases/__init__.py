"""What the server does in a phase: the state machine, and a file for each kind of phase."""
