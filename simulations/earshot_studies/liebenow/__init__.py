"""Studies of the thesis (Liebenow 2022), and three figures of our own."""
