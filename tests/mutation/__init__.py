"""Break the code on purpose, a line at a time, and see which tests notice: `make mutants`."""
