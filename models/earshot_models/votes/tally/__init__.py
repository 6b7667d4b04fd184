"""Private votes of an ensemble of teachers: two tallies, the labelling loop, and costs."""
