"""Random schemas, tables full of poison, relations of every operation, aggregates and neighbours.

Everything is made from one seed, so that a case can be made again from the number that a failing test prints.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.query.ops import Aggregate, Group, Measure, Relation, Tally, Together
from hubbub.testing.odd_values import GOOD, POISON
from tests.query import interpreter
from tests.query.expressions import (
    ALL_FUNCTIONS,
    TIMES,
    Expressions,
    functions_in,
    good,
    kind_of,
    raw,
    seeds,
)
from tests.query.relating import PATHS, UNIT, Operation, Relations, functions_of, kinds_of, operations

__all__ = [
    "ALL_FUNCTIONS",
    "GOOD",
    "POISON",
    "TIMES",
    "Expressions",
    "Relations",
    "functions_in",
    "functions_of",
    "good",
    "kind_of",
    "kinds_of",
    "operations",
    "raw",
    "seeds",
]

# Tables


@dataclass(frozen=True)
class Case:
    """Tables, and something to ask of them."""

    schema: dict[str, tuple[tuple[str, Kind], ...]]
    """Each table's own columns with their kinds."""
    tables: dict[str, list[dict[str, Any]]]
    relation: Relation
    unit: str = UNIT

    def without(self, unit: Any, *, leaving: bool = False) -> "Case":
        """The neighbour that lacks one unit; rows that led to it may stay, and lead nowhere."""
        return self._where(lambda owner: owner != unit, leaving=leaving)

    def only(self, unit: Any) -> "Case":
        """What one unit has, and what is public."""
        return self._where(lambda owner: owner == unit)

    def _where(self, stays: Callable[[Any], bool], *, leaving: bool = False) -> "Case":
        tables = {
            name: [row for row in rows if self._public(name, leaving) or stays(self.owner(name, row))]
            for name, rows in self.tables.items()
        }
        return replace(self, tables=tables)

    def _public(self, table: str, leaving: bool) -> bool:
        return leaving if table in PATHS else self.unit not in dict(self.schema[table])

    def owner(self, table: str, row: Mapping[str, Any]) -> Any:
        """Whose a row is; None for nobody's."""
        for step in PATHS.get(table, ()):
            wanted = row[step.column]
            found = [one for one in self.tables[step.table] if one[step.key] == wanted is not None]
            if not found:
                return None
            row = found[0]
        return row[self.unit]

    def shuffled(self, rng: Random) -> "Case":
        """The same rows in another order."""
        return replace(self, tables={name: rng.sample(rows, len(rows)) for name, rows in self.tables.items()})

    @property
    def units(self) -> list[Any]:
        """Those who have rows."""
        rows = itertools.chain.from_iterable(self.tables.values())
        return list(dict.fromkeys(row[self.unit] for row in rows if row.get(self.unit) is not None))


def case(rng: Random, *, rows: int = 25, most: int = 3, top: Operation | None = None) -> Case:
    """Two private tables of the same units, a public one, and a relation over them, with ``top`` above all others."""
    unit_kind, other_kind = rng.choice(
        ((integer(*INT64), integer(*INT64)), (integer(*INT64), integer(*INT128)), (of(Type.TEXT), of(Type.TEXT)))
    )
    units = [good(rng, replace(unit_kind, nullable=False)) for _ in range(rng.randint(1, 6))]
    schema = {
        "private": ((UNIT, unit_kind), *_columns(rng, "c")),
        "second": ((UNIT, other_kind), *_columns(rng, "d")),
        "public": _columns(rng, "p"),
    }
    key_kind = rng.choice((integer(0, 1000), integer(*INT64), of(Type.TEXT)))
    number_kind, wide = integer(0, 99), integer(*INT128)
    schema |= {
        "owners": ((UNIT, unit_kind), ("id", key_kind)),
        "parts": (
            ("of", wide if key_kind.type is Type.INTEGER else key_kind),
            ("no", number_kind),
            *_columns(rng, "e"),
        ),
        "pieces": (("part", number_kind), *_columns(rng, "f")),
    }
    sizes = {"private": rows, "second": rows // 2, "public": 6}
    tables = {name: _rows(rng, schema[name], rng.randint(0, sizes[name]), units) for name in sizes}
    ids = _different(rng, key_kind, 8)
    tables["owners"] = [{UNIT: rng.choice((*units, *units, None)), "id": one} for one in (*ids[:6], None)]
    tables["parts"] = _rows(rng, schema["parts"], rng.randint(0, rows // 3), units)
    for place, row in enumerate(tables["parts"]):
        row |= {"of": rng.choice((*ids, None)), "no": rng.choice((place, place, place, None))}
    tables["pieces"] = _rows(rng, schema["pieces"], rng.randint(0, rows // 3), units)
    for row in tables["pieces"]:
        row["part"] = rng.choice((*range(len(tables["parts"]) + 2), None))
    made = Relations(rng, schema, tables)
    relation = made.above(made.scan(rng.choice(("private", "private", "private", *PATHS)), "s"), most)
    return Case(schema, tables, relation if top is None else made.bounded(top, relation))


def _different(rng: Random, kind: Kind, many: int) -> list[Any]:
    """Keys: no two are equal."""
    found: list[Any] = list(range(many)) if kind.type is Type.INTEGER else [f"key {place}" for place in range(many)]
    return rng.sample(found, many)


def _columns(rng: Random, prefix: str) -> tuple[tuple[str, Kind], ...]:
    many = rng.randint(len(Type), len(Type) + 2)
    types = [*Type, *(rng.choice(list(Type)) for _ in range(many - len(Type)))]
    return tuple((f"{prefix}{place}", kind_of(rng, type_)) for place, type_ in enumerate(types))


def _rows(rng: Random, columns: Sequence[tuple[str, Kind]], many: int, units: Sequence[Any]) -> list[dict[str, Any]]:
    """Now and then a row that is there already: what is tied must be alike."""
    out: list[dict[str, Any]] = []
    for _ in range(many):
        row = dict(rng.choice(out)) if out and rng.random() < 0.3 else {name: raw(rng, kind) for name, kind in columns}
        if UNIT in row:
            row[UNIT] = None if rng.random() < 0.1 else rng.choice(units)
        if out and rng.random() < 0.2:
            changed = rng.choice(columns)
            row |= {} if changed[0] == UNIT else {changed[0]: raw(rng, changed[1])}
        out.append(row)
    return out


# Aggregates


def aggregate(rng: Random, made: Case, *, most_groups: int | None = None) -> Aggregate:
    """Some tallies over some groups of a case's relation."""
    columns = kinds_of(made.relation)
    expressions = Expressions(rng, columns)
    rows = [row for _, row in interpreter.relation(made.relation, made.tables)]
    groups = tuple(_group(rng, f"g{place}", expressions, rows) for place in range(rng.randint(0, 2)))
    tallies = tuple(_tally(rng, expressions) for _ in range(rng.randint(1, 4)))
    most = rng.randint(1, 3) if most_groups is None else most_groups
    both = Together(rows=rng.randint(1, 3), total=rng.randint(3, 5)) if groups and rng.random() < 0.4 else None
    return Aggregate(
        input=made.relation,
        groups=groups,
        tallies=tuple(_shared_out(rng, one) for one in tallies) if both else tallies,
        most_groups=most if groups else 1,
        together=both,
    )


def _shared_out(rng: Random, tally: Tally) -> Tally:
    """With what a row adds, where rows are counted over all groups; now and then one is bounded group by group."""
    if tally.measure not in {Measure.ROWS, Measure.TOTAL} or rng.random() < 0.2:
        return tally
    return replace(
        tally, a_row=(0, 1) if tally.measure is Measure.ROWS else (-rng.randint(0, 900), rng.randint(0, 900))
    )


def _group(rng: Random, name: str, made: Expressions, rows: Sequence[Mapping[str, Any]]) -> Group:
    expression = made.make(rng.choice([one for one in Type if one is not Type.REAL]), 2)
    seen = [interpreter.value(expression, row) for row in rows]
    some = [good(rng, expression.kind) for _ in range(2)]
    values = list(dict.fromkeys([*rng.sample(seen, min(len(seen), 4)), *some]))
    return Group(name=name, expression=expression, values=tuple(values))


def _tally(rng: Random, made: Expressions) -> Tally:
    measure = rng.choice((Measure.ROWS, Measure.UNITS, Measure.TOTAL))
    if measure is Measure.UNITS:
        argument = made.make(made.any_type(), 1) if rng.random() < 0.5 else None
        return Tally(measure=measure, argument=argument)
    if measure is Measure.ROWS:
        argument = made.make(made.any_type(), 1) if rng.random() < 0.5 else None
        return Tally(measure=measure, argument=argument, bounds=(0, rng.randint(1, 4)))
    type_ = rng.choice((Type.INTEGER, Type.REAL))
    grid = Fraction(1) if type_ is Type.INTEGER else Fraction(2) ** rng.choice((-20, -3, 0, 1, 5))
    low, high = sorted(rng.sample(range(-1000, 1000), 2))
    origin = rng.choice((0, 0, (low + high) // 2)) * grid
    span = rng.randint(1, 3000)
    return Tally(
        measure=measure,
        argument=made.make(type_, 2),
        clamp=(low * grid, high * grid),
        origin=origin,
        grid=grid,
        bounds=rng.choice(((0, span), (-span, 0), (-span, span), (-3, span))),
        most_rows=rng.choice((None, 1, 2, 3)),
    )


def keyed(key: bytes, most: int) -> interpreter.Choose:
    """A choice of groups by a keyed hash: a function of the unit and its own groups alone."""

    def choose(unit: Any, own: list[interpreter.Cell]) -> list[interpreter.Cell]:
        def rank(cell: interpreter.Cell) -> bytes:
            return hashlib.blake2b(repr((unit, cell)).encode("utf-8", "surrogatepass"), key=key).digest()

        return sorted(own, key=rank)[:most]

    return choose
