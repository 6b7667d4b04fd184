"""Private votes of ensembles: rules, their costs, tallies, and students of the answers."""
