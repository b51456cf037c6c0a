"""Records worked out again from published tables: exact counts by one, two or three attributes are equations.

The unknowns are the numbers of people with each combination of all the attributes. Integer programming finds numbers
that fit every published count; a record that is in all solutions is certain, whoever it is about.

Ref: Dinur, Nissim 2003; Garfinkel, Abowd, Martindale 2018 (census blocks).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array, MadeUp
from hubbub.attack.success_rate import against_likely_records
from hubbub.errors import HubbubError, ParameterError

Record = tuple[str, ...]
Domain = Mapping[str, Sequence[str]]
_MOST_CELLS = 5000
CENSUS: Domain = {
    "sex": ("female", "male"),
    "age": ("0-17", "18-34", "35-49", "50-64", "65+"),
    "race": ("A", "B", "C", "D"),
    "hispanic": ("no", "yes"),
}
"""Attributes of a made-up block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A published table: how many people have each combination of some attributes, those with nobody included."""

    of: tuple[str, ...]
    counts: Mapping[Record, float]


def margins(records: Sequence[Record], *, domain: Domain, ways: int) -> list[Margin]:
    """All exact tables of so many attributes."""
    names = list(domain)
    found = []
    for of in combinations(range(len(names)), ways):
        seen = Counter(tuple(record[place] for place in of) for record in records)
        keys = product(*(domain[names[place]] for place in of))
        found.append(Margin(of=tuple(names[place] for place in of), counts={key: seen[key] for key in keys}))
    return found


def _system(tables: Sequence[Margin], domain: Domain) -> tuple[list[Record], Any, Array]:
    """Combinations, and the equations that the published counts are."""
    names = list(domain)
    cells = list(product(*domain.values()))
    if len(cells) > _MOST_CELLS:
        raise ParameterError("domain", f"of at most {_MOST_CELLS:,} combinations", len(cells))
    lines: list[int] = []
    places: list[int] = []
    right: list[float] = []
    for table in tables:
        unknown = [name for name in table.of if name not in names]
        if unknown:
            raise ParameterError("tables", f"about {', '.join(names)}", unknown[0])
        at = [names.index(name) for name in table.of]
        number = {key: len(right) + place for place, key in enumerate(table.counts)}
        right += [float(count) for count in table.counts.values()]
        for place, cell in enumerate(cells):
            line = number.get(tuple(cell[one] for one in at))
            if line is not None:
                lines.append(line)
                places.append(place)
    body = csr_array((np.ones(len(lines)), (lines, places)), shape=(len(right), len(cells)))
    return cells, body, np.array(right)


def _solve(body: Any, right: Array, *, price: Array, low: Array, high: Array) -> Array | None:
    found = milp(
        price,
        constraints=LinearConstraint(body, right, right),
        bounds=Bounds(low, high),
        integrality=np.ones(len(price)),
    )
    return None if found.x is None else np.rint(found.x).astype(np.int64)


def rebuild(tables: Sequence[Margin], *, domain: Domain) -> list[Record]:
    """Records whose counts are off by as little as can be: by nothing, where the tables are exact."""
    cells, body, right = _system(tables, domain)
    count = len(right)
    wide = hstack([body, eye_array(count), -eye_array(count)], format="csr")
    price = np.concatenate([np.zeros(len(cells)), np.ones(2 * count)])
    found = milp(
        price,
        constraints=LinearConstraint(wide, right, right),
        bounds=Bounds(0, np.inf),
        integrality=np.concatenate([np.ones(len(cells)), np.zeros(2 * count)]),
        options={"time_limit": 30.0, "mip_rel_gap": 0.01},
    )
    if found.x is None:
        raise HubbubError("The solver found no records in half a minute. Give it fewer attributes or tables.")
    numbers = np.rint(found.x[: len(cells)]).astype(np.int64)
    return [cell for cell, number in zip(cells, numbers, strict=True) for _ in range(number)]


def certain(tables: Sequence[Margin], *, domain: Domain) -> list[Record]:
    """Records that are in every block with these counts; none where no block has them."""
    cells, body, right = _system(tables, domain)
    none, top = np.zeros(len(cells)), np.full(len(cells), np.inf)
    one = _solve(body, right, price=none, low=none, high=top)
    if one is None:
        return []
    least = one.copy()
    for place in np.flatnonzero(one):
        if least[place] == 0:
            continue  # another solution does without it
        price = none.copy()
        price[place] = 1
        found = _solve(body, right, price=price, low=none, high=top)
        least = least if found is None else np.minimum(least, found)
    return [cell for cell, number in zip(cells, least, strict=True) for _ in range(number)]


def consistent(tables: Sequence[Margin], *, domain: Domain, most: int = 100) -> list[list[Record]]:
    """Blocks with exactly these counts, up to ``most`` of them."""
    cells, body, right = _system(tables, domain)
    none, top = np.zeros(len(cells)), np.full(len(cells), np.inf)

    def search(low: Array, high: Array) -> Iterator[Array]:
        """Fix one number after the other: each branch that has a solution ends in one."""
        first = _solve(body, right, price=none, low=low, high=high)
        if first is None:
            return
        yield first
        low, high = low.copy(), high.copy()
        for place in np.flatnonzero(low < high):  # the others share a beginning with this one, and then differ
            value = first[place]
            if low[place] < value:
                below = high.copy()
                below[place] = value - 1
                yield from search(low, below)
            above = low.copy()
            above[place] = value + 1
            if above[place] <= high[place]:
                yield from search(above, high)
            low[place] = high[place] = value

    found = []
    for numbers in search(none, top):
        found.append([cell for cell, number in zip(cells, numbers, strict=True) for _ in range(number)])
        if len(found) == most:
            break
    return found


def overlap(one: Sequence[Record], other: Sequence[Record]) -> int:
    """Return the number of records that two blocks share."""
    return sum((Counter(one) & Counter(other)).values())


def block(*, people: int = 30, seed: int = 0, domain: Domain = CENSUS) -> list[Record]:
    """Made-up people who live in one block: commoner values first."""
    source = MadeUp(seed, "block")
    drawn = []
    for values in domain.values():
        weights = 1.0 / np.arange(1, len(values) + 1)
        edges = np.cumsum(weights) / weights.sum()
        drawn.append([values[place] for place in np.searchsorted(edges[:-1], source.uniform(people), side="right")])
    return list(zip(*drawn, strict=True))


def marginals(
    truth: Sequence[Record], tables: Sequence[Margin], *, domain: Domain = CENSUS, target: str, most: int = 20
) -> AttackFinding:
    """Work the records out again, and compare them with the truth that only the lab knows."""
    found = rebuild(tables, domain=domain)
    sure = certain(tables, domain=domain)
    blocks = consistent(tables, domain=domain, most=most)
    right = overlap(found, truth) / max(1, len(truth), len(found))
    proven = overlap(sure, truth) / max(1, len(truth))
    sole = [record for record, times in Counter(truth).items() if times == 1]
    exposed = overlap(sole, found) / max(1, len(sole))
    cells = list(product(*domain.values()))
    rate = against_likely_records(found, truth, cells=cells) if truth else None
    many = (
        f"{len(blocks)}{' or more' if len(blocks) == most else ''} blocks have" if len(blocks) > 1 else "One block has"
    )
    return AttackFinding(
        title=f"{len(truth)} records worked out again from {len(tables)} tables: {target}",
        verdict=f"{right:.0%} of the records are right, and {proven:.0%} are in every block that has these counts"
        f"{'' if proven or rate is None else rate.beside_chance}.",
        works=proven > 0 or (rate is not None and rate.is_better),
        rate=rate,
        notes=(
            f"{many} exactly these counts." if blocks else "No block has exactly these counts.",
            f"Of the {len(sole)} people whose record nobody else has, {exposed:.0%} are found.",
            "Chance is the best guess from the shares of each attribute. Records in every block are certain.",
        ),
        columns=("record", "in truth", "worked out", "certain"),
        rows=tuple(
            (", ".join(record), str(count), str(Counter(found)[record]), str(Counter(sure)[record]))
            for record, count in sorted(Counter(truth).items())
        ),
        numbers={"right": right, "certain": proven, "blocks": len(blocks), "unique found": exposed}
        | ({} if rate is None else {"base": rate.chance, "p": rate.p_value}),
        draw=partial(_draw, right, proven, exposed),
    )


def _draw(right: float, proven: float, exposed: float, axes: Any) -> None:
    names = ["records right", "records certain", "records nobody else has"]
    axes.barh(names, [right, proven, exposed], color=["crimson", "darkred", "orange"])
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.set_xlabel("share")
