"""Server's part in a phase: the state machine, and a module for each kind of phase."""
