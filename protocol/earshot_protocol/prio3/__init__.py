"""Ballots in two shares that prove, unopened, that they mark at most a given number of places."""
