"""Checks of a ledger that trust no balance: the chain, the rules, and a second accountant."""
