"""Attacks on a gateway that answers questions."""
