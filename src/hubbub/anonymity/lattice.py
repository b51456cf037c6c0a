"""One level of coarseness for each column, the same in all rows, with few rows left out.

Levels are tried from fine to coarse. Whatever is coarser than a table that will do with all its rows has lost more, and
is not looked at.

Ref: Samarati 2001; LeFevre, DeWitt, Ramakrishnan 2005.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any

from hubbub.anonymity.hierarchies import GeneralizationHierarchy
from hubbub.anonymity.measure import loss_of
from hubbub.anonymity.wanted import Scale, Wanted, scale_of
from hubbub.errors import HubbubError, ParameterError

Levels = tuple[int, ...]
_MOST = 10_000


def find_levels(
    keys: Sequence[Sequence[Any]],
    secrets: Sequence[Any],
    *,
    hierarchies: Sequence[GeneralizationHierarchy],
    wanted: Wanted,
    scale: Scale | None,
    suppress: float,
) -> tuple[Levels, list[tuple[str, ...] | None]]:
    """The levels that lose least, and the rows as they are written then, or None for those that are left out."""
    nodes = sorted(product(*(range(one.top + 1) for one in hierarchies)), key=lambda node: (sum(node), node))
    if len(nodes) > _MOST:
        raise ParameterError("hierarchies", f"with at most {_MOST:,} combinations of levels", len(nodes))
    spelt = [
        [{value: one.at(value, level) for value in {key[place] for key in keys}} for level in range(one.top + 1)]
        for place, one in enumerate(hierarchies)
    ]
    good: list[Levels] = []
    best: tuple[float, Levels, list[tuple[str, ...] | None]] | None = None
    for node in nodes:
        if any(all(a <= b for a, b in zip(fine, node, strict=True)) for fine in good):
            continue
        rows = [tuple(spelt[place][node[place]][one] for place, one in enumerate(key)) for key in keys]
        made = _with_rows_left_out(rows, secrets, wanted=wanted, scale=scale, most=suppress * len(keys))
        if made is None:
            continue
        if None not in made:
            good.append(node)
        lost = loss_of(keys, made, k=wanted.k).penalty
        if best is None or lost < best[0]:
            best = (lost, node, made)
    if best is None:
        raise HubbubError(f"No levels give {wanted}. Ask for less, leave more rows out, or name fewer columns.")
    return best[1], best[2]


def _with_rows_left_out(
    rows: list[tuple[str, ...]], secrets: Sequence[Any], *, wanted: Wanted, scale: Scale | None, most: float
) -> list[tuple[str, ...] | None] | None:
    """Without the groups that are not as they should be; None if these are too many, or if it does not help.

    Leaving rows out changes what all rows are like, so the groups that stay are looked at once more.
    """
    held: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        held[row].append(place)

    def fine(places: list[int], scale: Scale | None) -> bool:
        return wanted.is_met(len(places), [secrets[one] for one in places], scale)

    stay = {row: places for row, places in held.items() if fine(places, scale)}
    kept = sum(map(len, stay.values()))
    if not kept or len(rows) - kept > most:
        return None
    if scale is not None and kept < len(rows):
        order = scale.values if scale.ordered else False
        scale = scale_of([secrets[one] for places in stay.values() for one in places], order=order)
        if not all(fine(places, scale) for places in stay.values()):
            return None
    return [row if row in stay else None for row in rows]
