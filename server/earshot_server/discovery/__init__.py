"""From what phones publish to global centroids."""
