"""k-means clustering."""
