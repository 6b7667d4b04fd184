"""What `earshot` runs on a phone."""
