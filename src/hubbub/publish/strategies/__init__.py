"""Strategies: what is measured of a vector of cells, and how cells are estimated from it."""
