"""Targets of the side-by-side table that are releases without names: a table with noise in every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import MadeUp
from hubbub.attack.success_rate import against_guessing, most_allowed
from hubbub.attack.suppression import PublishedTable, hcup, suppression
from hubbub.cli.lab.targets import gate, measure
from hubbub.mechanisms import Geometric

QUASI = ("zip", "sex", "age")
ZIPS = [f"{130 + place}00" for place in range(10)]
SEXES = ["female", "male"]
AGES = list(range(20, 60))
CONDITIONS = ["flu", "asthma", "cancer", "AIDS", "none"]
Columns = Mapping[str, Sequence[Any]]


def guesses(target: str, right: int, *, trials: int, base: float) -> AttackFinding:
    """What an attacker who only guesses finds, beside the share ``base`` that anybody may find."""
    rate = against_guessing(right, trials=trials, chance=base)
    return AttackFinding(
        title=f"Guesses about {target}",
        verdict=f"{rate.share:.1%} of the guesses are right{rate.beside_chance}.",
        works=rate.is_better,
        rate=rate,
        numbers={"found": rate.share, "share": rate.share, "base": base},
    )


def share(found: AttackFinding, told: float) -> AttackFinding:
    """The same finding with one more number."""
    return replace(found, numbers={**found.numbers, "share": told})


def noisy_table(epsilon: Fraction) -> AttackFinding:
    """HCUP's counts as Hubbub would publish them: no cell is left out, none is exact, totals are sums of the cells."""
    shown = hcup()
    inner = np.array([[cell or 1 for cell in row[1:]] for row in shown.cells[1:]], dtype=np.int64)
    noisy = np.maximum(measure(Geometric(epsilon=epsilon), inner, width=1, epsilon=epsilon), 0)
    whole = np.block([[noisy.sum(), noisy.sum(axis=0)], [noisy.sum(axis=1)[:, None], noisy]])
    cells = tuple(tuple(int(cell) for cell in row) for row in whole)
    return suppression(PublishedTable(rows=shown.rows, columns=shown.columns, cells=cells))


def patients(*, people: int, seed: int = 0) -> tuple[Columns, Columns]:
    """A table without names, and a list with names: made up. The list holds the truth too, for the lab."""
    source = MadeUp(seed, "patients")
    columns = {
        name: [values[place] for place in source.below(people, len(values))]
        for name, values in (("zip", ZIPS), ("sex", SEXES), ("age", AGES), ("condition", CONDITIONS))
    }
    return columns, {"name": [f"person {place}" for place in range(people)], **columns}


def noisy_cells(known: Columns, *, releases: int, epsilon: Fraction) -> AttackFinding:
    """Counts by all that is known and the condition, released once or by several hospitals for ε together.

    The attacker adds the releases up, and says of everybody the condition whose cell is largest.
    """
    people = len(known["name"])
    columns = {"id": range(people), **{name: known[name] for name in (*QUASI, "condition")}}
    keys = {"zip": ZIPS, "sex": SEXES, "age": AGES, "condition": CONDITIONS}
    cells: dict[tuple[Any, ...], float] = {}
    names = ", ".join((*QUASI, "condition"))
    for _ in range(releases):
        with gate("people", columns, epsilon=epsilon / releases, keys=keys, max_groups=1, max_rows=1) as db:
            answer = db.sql(f"SELECT {names}, count(*) AS n FROM people GROUP BY {names}", epsilon=epsilon / releases)
        for *cell, number in answer.rows:
            cells[tuple(cell)] = cells.get(tuple(cell), 0.0) + float(number)
    right = 0
    for who in zip(*(known[name] for name in QUASI), known["condition"], strict=True):
        told = max(CONDITIONS, key=lambda one: cells.get((*who[:-1], one), 0.0))
        right += told == who[-1]
    commonest = max(known["condition"].count(one) for one in CONDITIONS) / people
    allowed = most_allowed(commonest, epsilon=2 * float(epsilon))  # another condition is one row less, and one more
    return guesses(f"{releases} noisy releases", right, trials=people, base=allowed)
