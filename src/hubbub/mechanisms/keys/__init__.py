"""Partition selection: which private keys may be released."""
