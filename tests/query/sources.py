"""Random tables of a question: stays, and what can be made of them unit by unit, one within the other.

Each has the columns of stays, so that any question can be asked of it, and some have one more.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

COLUMNS = ("person", "ward", "cost", "nights", "points", "day", "urgent")
SHOWN = ", ".join(COLUMNS)
RARE = 4242
"""Points that one unit has, and nobody else."""
OWN = (
    *(f"t.points = {RARE}",) * 3,
    *(
        "t.nights > 3",
        "t.urgent",
        "t.ward = 'a'",
        "t.cost > 1",
        "t.points IS NOT NULL",
        "NOT t.urgent",
        "t.nights <> 1",
    ),
    *("t.day > DATE '2000-01-01'", "t.cost * t.nights > 5", "t.points % 2 = 1"),
)
"""Conditions on the other rows of a unit."""
EQUAL = ("t.ward = s.ward", "t.nights = s.nights", "t.day = s.day", "t.urgent = s.urgent", "t.ward = lower(s.ward)")
ORDERS = ("nights", "nights DESC", "ward", "urgent, nights DESC", "cost", "points DESC, day", "day", "length(ward)")
PLACES = ("row_number()", "rank()", "dense_rank()", "lag(nights)", "lead(nights, 2)", "lag(points)")
VALUES = ("count(*)", "sum(nights)", "max(nights)", "min(points)", "count(urgent)")
REALS = ("lag(cost)", "lead(cost)", "avg(nights)", "max(cost)")


@dataclass(frozen=True, kw_only=True)
class Source:
    """What stands behind FROM, what it was made by, and columns that it has besides those of stays."""

    sql: str
    made: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    real: tuple[str, ...] = ()


@dataclass
class Sources:
    """Makes them; names are never used twice."""

    rng: Random
    _count: Iterator[int] = field(default_factory=itertools.count)

    def make(self, depth: int, feature: str = "") -> Source:
        """With a feature at the top, or stays themselves."""
        return FEATURES[feature](self, depth - 1) if feature else Source(sql="stays")

    def below(self, depth: int) -> Source:
        """Mostly stays."""
        return self.make(depth, self.rng.choice(tuple(FEATURES)) if depth > 0 and self.rng.random() < 0.4 else "")

    def exists(self, depth: int) -> Source:
        """Rows that have another of the same unit, or have none."""
        rows, other, rng = self.below(depth), self.below(depth), self.rng
        if rng.random() < 0.15:
            inner = f"SELECT 1 FROM places t WHERE t.id = s.ward{rng.choice(('', ' AND t.floor > 1'))}"
        else:
            more = [*rng.sample(OWN, rng.choice((0, 1))), *rng.sample(EQUAL, rng.choice((0, 1)))]
            inner = f"SELECT 1 FROM {other.sql} t WHERE {' AND '.join(['t.person = s.person', *more])}"
        no = rng.choice(("", "NOT "))
        return self.of(rows, "exists", f"SELECT * FROM {rows.sql} s WHERE {no}EXISTS ({inner})", other)

    def within(self, depth: int) -> Source:
        """IN, correlated by the unit, or with what is public."""
        rows, other, rng = self.below(depth), self.below(depth), self.rng
        condition = rng.choice(OWN)
        test, inner = rng.choice(
            (
                ("person", f"SELECT t.person FROM {other.sql} t WHERE {condition}"),
                ("person", f"SELECT DISTINCT t.person FROM {other.sql} t WHERE {condition}"),
                ("(person, ward)", f"SELECT t.person, t.ward FROM {other.sql} t WHERE {condition}"),
                ("(person, nights)", f"SELECT t.person, t.nights FROM {other.sql} t WHERE {condition}"),
                ("person", f"SELECT person FROM {other.sql} t GROUP BY person HAVING count(*) > {rng.randint(1, 3)}"),
                (
                    "person",
                    f"SELECT person FROM {other.sql} t GROUP BY person HAVING sum(nights) > {rng.randint(1, 9)}",
                ),
                ("ward", "SELECT id FROM places WHERE floor > 1 AND id IS NOT NULL"),
            )
        )
        no = rng.choice(("", "", "NOT ")) if test in {"person", "ward"} else ""
        return self.of(rows, "in", f"SELECT * FROM {rows.sql} s WHERE {test} {no}IN ({inner})", other)

    def window(self, depth: int) -> Source:
        """One more column, which may decide about rows at once."""
        rows, rng, name = self.below(depth), self.rng, f"w{next(self._count)}"
        part = f"PARTITION BY person{rng.choice(('', '', ', ward', ', urgent'))}"
        kind = rng.choice(("place", "place", "place", "value", "real"))
        called = rng.choice({"place": PLACES, "value": VALUES, "real": REALS}[kind])
        ordered = called.startswith(("lag", "lead")) or (kind == "place" and rng.random() < 0.8)
        order = f" ORDER BY {rng.choice(ORDERS)}" if ordered or "rank()" in called else ""
        over = f"{called} OVER ({part}{order})"
        added = (
            {"real": (*rows.real, name)} if kind == "real" or called == "lag(cost)" else {"whole": (*rows.whole, name)}
        )
        text = f"SELECT s.*, {over} AS {name} FROM {rows.sql} s"
        if rng.random() < 0.4:
            first = f"SELECT * FROM {rows.sql} s QUALIFY row_number() OVER ({part} ORDER BY {rng.choice(ORDERS)})"
            return self.of(rows, "window", f"{first} <= {rng.randint(1, 3)}")
        kept = rng.choice(("", "", f" WHERE {name} <= 2", f" WHERE {name} > 1"))
        text = f"SELECT * FROM ({text}){kept}"
        return self.of(rows, "window", text, whole=added.get("whole", rows.whole), real=added.get("real", rows.real))

    def union(self, depth: int) -> Source:
        """Rows of the same units put together; a unit is in both."""
        rows, other, rng = self.below(depth), self.below(depth), self.rng
        arms = [f"SELECT {SHOWN} FROM {rows.sql}", f"SELECT {SHOWN} FROM {other.sql}"]
        if rng.random() < 0.5:
            arms[1] += f" t WHERE {rng.choice(OWN)}"
        if rng.random() < 0.3:
            arms.append("SELECT person, ward, cost, nights + 1, -points, day, NOT urgent FROM stays")
        return self.of(rows, "union", " UNION ALL ".join(arms), other, whole=(), real=())

    def joined(self, depth: int) -> Source:
        """Each row beside others of its unit."""
        rows, other, rng, name = self.below(depth), self.below(depth - 1), self.rng, f"w{next(self._count)}"
        kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
        more = [
            *rng.sample(EQUAL, rng.choice((0, 1, 1))),
            *([] if kind == "FULL JOIN" else rng.sample(OWN, rng.choice((0, 1)))),
        ]
        on = " AND ".join(["s.person = t.person", *more])
        if kind == "FULL JOIN":
            both = (
                "coalesce(s.person, t.person) AS person, coalesce(s.ward, t.ward) AS ward, s.cost, t.nights, t.points"
            )
            text = f"SELECT {both}, s.day, t.urgent FROM {rows.sql} s FULL JOIN {other.sql} t ON {on}"
            return self.of(rows, "join", text, other, whole=(), real=())
        text = f"SELECT s.*, t.nights AS {name} FROM {rows.sql} s {kind} {other.sql} t ON {on}"
        return self.of(rows, "join", text, other, whole=(*rows.whole, name))

    def reduced(self, depth: int) -> Source:
        """One row for each unit and some keys."""
        rows, rng = self.below(depth), self.rng
        keys = rng.choice((("ward",), ("ward",), ("ward", "urgent"), ("urgent",), ("nights", "ward"), ()))
        made = {
            "ward": f"CASE WHEN {rng.choice(('min', 'max'))}(ward) < 'b' THEN 'a' ELSE 'b' END",
            "cost": rng.choice(("max(cost)", "min(cost)", "sum(cost)", "avg(cost)")),
            "nights": rng.choice(("sum(nights)", "max(nights)", "count(nights)", "count(DISTINCT ward)")),
            "points": rng.choice(("min(points)", "max(points)", "count(*)", "count(DISTINCT points)")),
            "day": rng.choice(("min(day)", "max(day)")),
            "urgent": rng.choice(("max(nights) > 2", "count(*) > 1", "count(*) FILTER (WHERE urgent) > 0")),
        }
        shown = [one if one in keys else f"{made[one]} AS {one}" for one in COLUMNS[1:]]
        having = rng.choice(("", "", " HAVING count(*) > 1", " HAVING max(nights) > 2"))
        by = ", ".join(("person", *keys))
        text = f"SELECT person, {', '.join(shown)} FROM {rows.sql} s GROUP BY {by}{having}"
        if rng.random() < 0.2:
            text = f"SELECT DISTINCT {SHOWN} FROM {rows.sql} s"
        return self.of(rows, "reduce", text, whole=(), real=())

    def of(
        self, rows: Source, feature: str, text: str, other: Source | None = None, **columns: tuple[str, ...]
    ) -> Source:
        """A table in brackets."""
        made = (feature, *rows.made, *(() if other is None else other.made))
        own = {"whole": rows.whole, "real": rows.real} | columns
        return Source(sql=f"({text})", made=made, **own)


FEATURES: dict[str, Callable[[Sources, int], Source]] = {
    "exists": Sources.exists,
    "in": Sources.within,
    "window": Sources.window,
    "union": Sources.union,
    "join": Sources.joined,
    "reduce": Sources.reduced,
}


def grouping(rng: Random, keys: list[str]) -> str:
    """What stands behind GROUP BY where there are several groupings."""
    listed = ", ".join(f"({one})" for one in keys)
    return rng.choice((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS ({listed}, ())"))
