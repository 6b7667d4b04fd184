"""Teachers that vote on samples nobody has labelled, and students that learn from the answers."""
