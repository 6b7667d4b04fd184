"""HTTP front end in which slow, silent or endless connections hold no threads."""
