"""Where simulated phones run, and how their secure sums are computed."""
