"""Statements as an engine gets them: text, tables of public keys, and the number of secrets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyList:
    """The public values of one group, as a table that the statement joins with: each value with its place."""

    table: str
    type: str
    places: tuple[int, ...]
    values: tuple[str | None, ...]
    """As text, which the engine casts to the type."""


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement, the tables of public keys that it needs, and how many secret numbers of 64 bits it is given."""

    sql: str
    keys: tuple[KeyList, ...] = ()
    secrets: int = 0
