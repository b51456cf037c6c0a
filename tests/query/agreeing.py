"""Whether exact tallies and histograms are the interpreter's, for questions of any shape and any limits.

Where the engine chooses (groups of a unit, its rows in a histogram, its values), any choice that was allowed is right:
what was chosen is then looked at where few choices are possible, and left alone where there are more.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hubbub.query.ops import Aggregate, ExactCounts, Measure
from tests.query import interpreter
from tests.query.expressions import functions_in
from tests.query.generate import Case
from tests.query.owned import exact

MOST_CHOICES = 64
"""Choices of groups that are tried."""


def disagreements(keep: interpreter.Keep, op: Aggregate, counted: ExactCounts, case: Case) -> tuple[list[str], int]:
    """What the engine counted and the interpreter does not, and how many numbers or histograms were compared.

    ``keep`` says which rows of a unit stay where there are too many: those that the engine keeps.
    """
    if not _exact(op):
        return [], 0
    rows = interpreter.grouped(op, case.tables, keep)
    places = [place for place in range(len(op.tallies)) if _decided(op, place, rows)]
    wanted = replace(op, tallies=tuple(op.tallies[place] for place in places), histograms=())
    answer = {
        cell: tuple(numbers[place] for place in places)
        for cell, numbers in zip(counted.cells, counted.tallies, strict=True)
    }
    over = interpreter.over(op, case.tables, keep)
    many = [len(rows[unit]) for unit in over]
    ways = math.comb if op.together is None else math.perm
    if math.prod(ways(groups, min(groups, op.most_groups)) for groups in many) > MOST_CHOICES:
        return [], 0
    found = [] if interpreter.possible(wanted, case.tables, answer, keep) else [f"tallies {places} are not possible"]
    compared = len(places)
    if over:
        return found, compared
    meant = interpreter.histograms(op, case.tables, lambda unit, own: own, keep)
    for place, wanted_bins in enumerate(op.histograms):
        most = wanted_bins.most_rows
        if any(len(_steps(op, place, own)) > most for groups in rows.values() for own in groups.values()):
            continue
        compared += 1
        shown = [Counter(dict(bins.pairs())) for bins in counted.histograms[place]]
        if shown != [Counter(steps) for steps in meant[place]]:
            found.append(f"histogram {place} is another")
    return found, compared


def _exact(op: Aggregate) -> bool:
    parts = [*(one.expression for one in op.groups), *(one.argument for one in op.histograms)]
    parts += [one.argument for one in op.tallies if one.argument is not None]
    return exact(op.input) and not any({"ln", "exp"} & set(functions_in(one)) for one in parts)


def _decided(op: Aggregate, place: int, rows: Mapping[Any, Mapping[Any, Sequence[Mapping[str, Any]]]]) -> bool:
    """Different values are chosen where a unit has too many."""
    tally = op.tallies[place]
    if tally.measure is not Measure.DISTINCT or tally.argument is None:
        return True
    free = replace(tally, bounds=(0, 1 << 40))
    amounts = [interpreter.amount(free, own) for groups in rows.values() for own in groups.values()]
    return all(isinstance(one, frozenset) and len(one) <= tally.bounds[1] for one in amounts)


def _steps(op: Aggregate, place: int, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    wanted = replace(op.histograms[place], most_rows=1 << 40)
    return interpreter.bins(replace(op, histograms=(wanted,)), 0, rows)
