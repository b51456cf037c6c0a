"""Facts that are known of a question before any row is read: shape, bounds, keys and work."""
