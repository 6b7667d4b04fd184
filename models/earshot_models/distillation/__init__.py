"""Learning from a larger encoder that hears the same sound: no label, and nothing of it to ship."""
