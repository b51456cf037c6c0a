"""From SQL text to our operations."""
