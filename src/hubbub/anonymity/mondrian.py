"""Mondrian: cut the table in two at a median, again and again, as long as both halves are as they should be.

Ref: LeFevre, DeWitt, Ramakrishnan 2006 (strict cuts: equal values stay together).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.anonymity.hierarchies import write_value
from hubbub.anonymity.wanted import SUPPRESSED, Scale, Wanted, is_number

Rows = np.ndarray[Any, Any]


def partitions(
    keys: Sequence[Sequence[Any]], secrets: Sequence[Any], *, wanted: Wanted, scale: Scale | None
) -> list[Rows]:  # fmt: skip
    """Numbers of the rows of each group. The whole table must be as it should be, or the only group is not."""
    codes = [_codes(column) for column in zip(*keys, strict=True)]
    places = np.stack([code for code, _ in codes], axis=1)
    spread = np.stack([held for _, held in codes], axis=1)
    whole = np.ptp(spread, axis=0)
    waiting, done = [np.arange(len(keys))], []
    while waiting:
        rows = waiting.pop()
        halves = _cut(rows, places, spread, whole, secrets, wanted=wanted, scale=scale)
        if halves is None:
            done.append(rows)
        else:
            waiting += halves
    return sorted(done, key=lambda rows: int(rows[0]))


def _cut(
    rows: Rows, places: Rows, spread: Rows, whole: Rows, secrets: Sequence[Any], *, wanted: Wanted, scale: Scale | None
) -> list[Rows] | None:
    """The widest column that can be cut is."""
    if len(rows) < 2 * wanted.k:
        return None
    width = np.ptp(spread[rows], axis=0) / np.where(whole > 0, whole, 1)
    for column in np.argsort(-width, kind="stable"):
        own = places[rows, column]
        middle = np.sort(own)[(len(own) - 1) // 2]
        for left in (own <= middle, own < middle):  # strict: the median's own rows go to one side
            halves = [rows[left], rows[~left]]
            if all(len(half) and wanted.is_met(len(half), [secrets[one] for one in half], scale) for half in halves):
                return halves
    return None


def _codes(column: Sequence[Any]) -> tuple[Rows, Rows]:
    """The rank of each value among the distinct ones, and how far along the range it is. Missing values come first."""
    numbers = all(one is None or is_number(one) for one in column)
    distinct = sorted({one for one in column if one is not None}, key=None if numbers else str)
    rank = {None: 0, **{value: place + 1 for place, value in enumerate(distinct)}}
    ranks = np.array([rank[one] for one in column], dtype=np.int64)
    if not numbers:
        return ranks, ranks.astype(float)
    lowest = float(distinct[0]) if distinct else 0.0
    return ranks, np.array([lowest if one is None else float(one) for one in column])


def describe_values(column: Sequence[Any]) -> str:
    """The values of a group, as one: themselves, the range of numbers, or a list."""
    if any(one is None for one in column):
        return SUPPRESSED
    distinct = set(column)
    if len(distinct) == 1:
        return write_value(next(iter(distinct)))
    if all(map(is_number, distinct)):
        return f"[{write_value(min(distinct))}-{write_value(max(distinct))}]"
    return "{" + ", ".join(sorted(map(write_value, distinct))) + "}"
