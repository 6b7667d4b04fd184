"""Teachers that vote on unlabelled samples, and students that learn from the answers."""
