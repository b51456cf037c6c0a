"""Dialects, the words of engines for the nodes of a statement: each dialect is data, and one printer reads it."""
