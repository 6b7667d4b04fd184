"""Studies of the thesis (Liebenow 2022), and two figures of our own."""
