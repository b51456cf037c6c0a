"""Noise that is added to numbers, and randomized response."""
