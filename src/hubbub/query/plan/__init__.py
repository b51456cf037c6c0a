"""From a question to its measurements and its price."""
