"""Stores that keep a ledger: SQLite or PostgreSQL, one writer at a time."""
