"""The composition root: open data, and answer whatever is asked of it."""
