"""Figures and exercises of the lectures that Hubbub grew from, done again with exact noise."""
