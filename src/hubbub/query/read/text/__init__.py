"""The text of a question: parsing, its dialect, and options that are written in it."""
