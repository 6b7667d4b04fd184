"""What smoothing and correction of a campaign's weekly counts are worth."""
