"""Learning from a larger encoder that hears the same sound: no label, and nothing to ship of it."""
