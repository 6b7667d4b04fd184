"""Private votes of ensembles: rules, what they cost, who counts, and students of the answers."""
