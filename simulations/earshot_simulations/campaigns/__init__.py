"""A campaign that simulated phones live through, week after week."""
