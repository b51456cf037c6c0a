"""Statements as nodes: what lowering builds, and what the printer of a dialect turns into text."""
