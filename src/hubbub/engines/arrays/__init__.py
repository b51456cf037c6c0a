"""NumPy arrays in memory as an engine."""
