"""From our operations to the statements that an engine runs."""
