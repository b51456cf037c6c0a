"""A table whose words nobody listed, to be asked with private keys: rows, policy, and ways to look inside."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hubbub import noise
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.ledger import Ledger, Marks
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.query.check.keys import in_order
from hubbub.query.ops import Cell, ExactCounts
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import private_part
from hubbub.session.database import Database
from tests.query.inside import Inside, connected, fixed_key
from tests.query.owned import fill

POSTS: tuple[TableColumn, ...] = (
    TableColumn(name="person", kind=of(Type.INTEGER)),
    TableColumn(name="word", kind=of(Type.TEXT)),
    TableColumn(name="tag", kind=of(Type.TEXT)),
    TableColumn(name="number", kind=of(Type.INTEGER)),
    TableColumn(name="day", kind=of(Type.DATE)),
    TableColumn(name="seen", kind=of(Type.TIMESTAMP)),
    TableColumn(name="lang", kind=of(Type.TEXT), keys=("en", "de", "fr")),
    TableColumn(name="score", kind=integer(0, 100), bounds=(Fraction(0), Fraction(10))),
)
BUDGET = Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10))
Rows = Sequence[Mapping[str, Any]]


def post(person: int | None, **values: Any) -> dict[str, Any]:
    """A row; what is not said is missing."""
    return {column.name: values.get(column.name) for column in POSTS} | {"person": person}


class Forum:
    """Databases over rows in memory, with a ledger each folder."""

    def __init__(self, folder: Path, *, budget: Budget = BUDGET) -> None:
        self.budget = budget
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.engine = Inside(connected())
        self._version = 0

    def load(self, rows: Rows, *, groups: int = 3, rows_each: int = 3, threads: int = 1, **limits: Any) -> Database:
        self.engine.connection.execute(f"SET threads = {threads}")
        fill(self.engine.connection, "posts", [(column.name, column.kind) for column in POSTS], rows)
        self._version += 1
        source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table="posts")
        policy = Policy(
            account="people",
            budget=self.budget,
            tables={"posts": Table(name="posts", source=source, columns=POSTS, unit="person")},
            limits=Limits(max_groups=groups, max_rows=rows_each, **limits),
            version=str(self._version),
        )
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self.engine.connection.close()
        self.ledger.close()


def counted(db: Database, plan: Plan) -> ExactCounts:
    """The exact numbers, with a fixed key."""
    with fixed_key():
        return exact_of(db, plan.aggregate)


@contextmanager
def without_noise() -> Iterator[None]:
    """Every additive draw is 0."""

    def zeros(**given: Any) -> Any:
        size = given.get("size")
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    names = ("discrete_laplace", "discrete_gaussian", "laplace_for_each", "gaussian_for_each", "truncated_laplace")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(noise, name, zeros))
        yield


def moved(one: ExactCounts, other: ExactCounts, plan: Plan) -> list[str]:
    """What differs between neighbours that must not (SOUNDNESS 9 and 32)."""
    assert plan.selection is not None
    most, bits = plan.aggregate.most_groups, plan.selection.weight_bits
    found = []
    for side in (one, other):
        if list(side.cells) != in_order(side.cells) or [held for held, _ in side.units] != in_order(dict(side.units)):
            found.append("keys are not in their own order")
        if {private_part(plan.aggregate.groups, cell) for cell in side.cells} - dict(side.units).keys():
            found.append("a cell has no units")
    left, right = dict(one.units), dict(other.units)
    steps = {held: abs(left.get(held, 0) - right.get(held, 0)) for held in left.keys() | right.keys()}
    changed = {held: step for held, step in steps.items() if step}
    if len(changed) > most:
        found.append(f"{len(changed)} keys changed, and {most} may")
    weights = [1] * most if bits is None else [int((1 << bits) / t**0.5) for t in range(1, most + 1)]
    if any(step > max(weights) for step in changed.values()):
        found.append(f"a key moved by {max(changed.values())}")
    if bits is not None and sum(step**2 for step in changed.values()) > 1 << 2 * bits:
        found.append("weights moved by more than 1 in L2")
    alone = [max(left.get(held, 0), right.get(held, 0)) for held in changed if held not in left or held not in right]
    if any(units not in weights for units in alone):
        found.append(f"a key of one side alone has {alone} units")
    mine, theirs = (dict(zip(side.cells, side.tallies, strict=True)) for side in (one, other))
    for place, tally in enumerate(plan.aggregate.tallies):
        moves = [
            abs(mine.get(cell, (0,) * 9)[place] - theirs.get(cell, (0,) * 9)[place])
            for cell in mine.keys() | theirs.keys()
        ]
        if sum(step != 0 for step in moves) > most or max(moves, default=0) > tally.linf:
            found.append(f"tally {place} moved by {sorted(moves)[-most - 1 :]}, {most} by {tally.linf} allowed")
    for index, wanted in enumerate(plan.aggregate.histograms):
        bins = [
            {cell: dict(one.pairs()) for cell, one in zip(side.cells, side.histograms[index], strict=True)}
            for side in (one, other)
        ]
        rows = [_rows_apart(*(side.get(cell, {}) for side in bins)) for cell in bins[0].keys() | bins[1].keys()]
        if sum(step != 0 for step in rows) > most or max(rows, default=0) > wanted.most_rows:
            found.append(f"histogram {index} moved by {sorted(rows)[-most - 1 :]} rows")
    return found


def _rows_apart(one: dict[int, int], other: dict[int, int]) -> int:
    return sum(abs(one.get(step, 0) - other.get(step, 0)) for step in one.keys() | other.keys())


def by_hand(rows: Rows, keys: Sequence[str]) -> dict[Cell, set[Any]]:
    """The units of each combination of keys, where nobody has too many."""
    found: dict[Cell, set[Any]] = {}
    for row in rows:
        if row["person"] is not None:
            found.setdefault(tuple(row[key] for key in keys), set()).add(row["person"])
    return found
