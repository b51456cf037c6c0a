"""Marginals: tables over few columns each, without the cells of the whole table."""
