"""One tally of very many public groups, as an array: no object a group, on either side of the wall.

The statement is the one of every aggregate; its rows, codes with numbers, are put into one text, which is read into
zeros. Codes say where a number goes, so the order of the text does not matter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.engines.aggregate import aggregate
from hubbub.engines.relations import From, Statement
from hubbub.engines.words import Sql
from hubbub.errors import ParameterError
from hubbub.policy.tables import Table
from hubbub.query.ops import Aggregate

Array = np.ndarray[Any, Any]


def statement(op: Aggregate, tables: Mapping[str, Table], origins: From) -> Statement:
    """One row of one text: the codes of groups that have rows, each with its number behind it."""
    if len(op.tallies) != 1 or op.histograms or any(group.private for group in op.groups):
        raise ParameterError("aggregate", "one tally of public groups", op)
    made = aggregate(op, tables, origins)
    pair = "concat_ws(' ', t.code, t.total)"
    return replace(made, sql=Sql(f"SELECT string_agg({pair}, ' ') FROM ({made.sql}) AS t(code, total)"))


def filled(op: Aggregate, rows: Sequence[Sequence[Any]]) -> Array:
    """All groups, the last one's values changing fastest; zero where nobody is."""
    ((text,),) = rows
    found = np.zeros(math.prod(len(group.values) for group in op.groups), dtype=np.int64)
    if text:
        pairs = np.fromstring(text, dtype=np.int64, sep=" ").reshape(-1, 2)
        found[pairs[:, 0]] = pairs[:, 1]
    return found
