"""Random tables whose columns, tables and aliases have hostile names, and questions over them that DuckDB reads, too.

Every column holds numbers that no other column has, so that a question which reads the wrong one has another answer.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import TableColumn
from hubbub.query.ops import Scan
from tests.query import inside
from tests.query.generate import Case

DOTTED = ("a", "b", "c", "a.b", "b.c", "a.b.c", "c.a", ".", "a.")
"""Of these many pairs look alike once they are joined."""
SPELLINGS = (
    *(*DOTTED, "..", ".b", '"', '""', '"a"', 'a"', '"a".b', 'a"."b', '".', '.";'),
    *("x y", "X Z", "A b", "Ärzte", "É", "ﬁ", "1", "*", "'", "\\", ")", "#", "$1", "?", "%s", "{{x}}"),
    *("\N{GREEK CAPITAL LETTER ALPHA}", "\N{KELVIN SIGN}elvin", "\N{CYRILLIC SMALL LETTER A}"),
    *("unit", "copy", "rank", "many", "key", "next", "code", "place", "block", "total", "value", "bound", "kept"),
    *("c0", "c1", "k0", "k1", "v0", "x0", "p0", "o0", "a0", "keys0", "q", "r", "l", "o", "f", "t", "v", "k", "u"),
    *("key 0", "value 0", "noisy 0", "window 0", "over 0", "column 0", "distinct 0", "pair 0", "shown"),
    *("subquery1", "select", "from", "count(*)", "NULL", "';--", "/* x */", "-- x", "row", "n", "s"),
)
"""Dots, quotes, letters that look alike, SQL, and the names that operations and engines use themselves."""
STEP = 100
"""How far apart the values of two columns are."""


def quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Two private tables of the same units and a public one, under any names."""

    columns: Mapping[str, tuple[TableColumn, ...]]
    rows: Mapping[str, list[dict[str, Any]]]
    unit: str
    link: tuple[str, str]
    """The column of the first table that names rows of the public one, and their key there."""

    @property
    def names(self) -> tuple[str, str, str]:
        private, second, public = self.columns
        return private, second, public

    def numbers(self, called: str) -> list[str]:
        """The columns that can be added up."""
        return [column.name for column in self.columns[called] if column.bounds is not None]

    @property
    def case(self) -> Case:
        """The same for the reference interpreter, which is handed relations."""
        schema = {called: tuple(inside._kinds(columns)) for called, columns in self.columns.items()}
        return Case(schema, dict(self.rows), Scan(table=self.names[0], columns=(), unit=self.unit), self.unit)


def scene(rng: Random) -> Scene:
    """No two names of a table are alike to SQL; tables may share all of theirs."""
    spelt = _different(rng, 3)
    unit, *_ = own = _different(rng, 6)
    others = [unit, *(name for name in _different(rng, 6) if name.lower() != unit.lower())][:5]
    public = _different(rng, 4)
    first = itertools.count(1)

    def numbers(names: Sequence[str]) -> tuple[TableColumn, ...]:
        ends = [(STEP * place, STEP * place + 9) for place in itertools.islice(first, len(names))]
        return tuple(
            TableColumn(name=name, kind=integer(*end), bounds=(Fraction(end[0]), Fraction(end[1])))
            for name, end in zip(names, ends, strict=True)
        )

    who, link, key = TableColumn(name=unit, kind=of(Type.INTEGER)), own[1], public[0]
    linked = (TableColumn(name=link, kind=of(Type.INTEGER)), TableColumn(name=key, kind=of(Type.INTEGER)))
    columns = {
        spelt[0]: (who, linked[0], *numbers(own[2:])),
        spelt[1]: (who, *numbers(others[1:])),
        spelt[2]: (linked[1], *numbers(public[1:])),
    }
    rows = {
        called: [
            {
                column.name: number if column is linked[1] else rng.randint(0, 5)
                if column.bounds is None
                else rng.randint(*map(int, column.bounds))
                for column in listed
            }
            for number in range(6 if called == spelt[2] else 12)
        ]
        for called, listed in columns.items()
    }  # fmt: skip
    return Scene(columns=columns, rows=rows, unit=unit, link=(link, key))


def _different(rng: Random, many: int) -> list[str]:
    """Names that differ in more than case; every other time, such as look alike once they are joined."""
    first = rng.sample(DOTTED, len(DOTTED)) if rng.random() < 0.5 else []
    names: dict[str, str] = {}
    for name in (*first, *rng.sample(SPELLINGS, len(SPELLINGS))):
        names.setdefault(name.lower(), name)
    return list(names.values())[:many]


@dataclass
class Questions:
    """Questions over a scene, each of which DuckDB reads as it stands."""

    rng: Random
    scene: Scene

    def all(self) -> list[str]:
        return [make(self) for make in (*KINDS, *self.rng.choices(KINDS, k=3))]

    def plain(self) -> str:
        (alias,), private = _different(self.rng, 1), self.scene.names[0]
        return f"SELECT count(*), {self.sums(alias, private)} FROM {quoted(private)} AS {quoted(alias)}"

    def unnamed(self) -> str:
        """The table's own name is its alias."""
        private = self.scene.names[0]
        return f"SELECT {self.sums(private, private)} FROM {quoted(private)} WHERE {self.condition(private, private)}"

    def own_join(self) -> str:
        left, right = _different(self.rng, 2)
        private, second, _ = self.scene.names
        unit = self.scene.unit
        on = self.rng.choice((f"ON {quoted(left, unit)} = {quoted(right, unit)}", f"USING ({quoted(unit)})"))
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        shown = f"{self.sums(left, private)}, {self.sums(right, second)}"
        joined = f"{quoted(private)} AS {quoted(left)} {kind} {quoted(second)} AS {quoted(right)} {on}"
        return f"SELECT {shown} FROM {joined}"

    def public_join(self) -> str:
        left, right = _different(self.rng, 2)
        private, _, public = self.scene.names
        on = f"{quoted(left, self.scene.link[0])} = {quoted(right, self.scene.link[1])}"
        shown = f"{self.sums(left, private)}, {self.sums(right, public)}"
        return (
            f"SELECT {shown} FROM {quoted(private)} AS {quoted(left)} JOIN {quoted(public)} AS {quoted(right)} ON {on}"
        )

    def subquery(self) -> str:
        alias, inner = _different(self.rng, 2)
        made, names = self.made(inner)
        return f"SELECT {self.added(alias, names)} FROM ({made}) AS {quoted(alias)}"

    def view(self) -> str:
        called, alias, inner = _different(self.rng, 3)
        made, names = self.made(inner)
        return (
            f"WITH {quoted(called)} AS ({made}) SELECT {self.added(alias, names)} FROM {quoted(called)} {quoted(alias)}"
        )

    def grouped(self) -> str:
        """One row a unit, its columns under new names."""
        alias, inner = _different(self.rng, 2)
        named = _different(self.rng, 3)
        private, unit = self.scene.names[0], self.scene.unit
        left, right = self.rng.choices(self.scene.numbers(private), k=2)
        values = [quoted(inner, unit), f"max({quoted(inner, left)})", f"min({quoted(inner, right)})"]
        shown = ", ".join(f"{value} AS {quoted(name)}" for value, name in zip(values, named, strict=True))
        made = f"SELECT {shown} FROM {quoted(private)} AS {quoted(inner)} GROUP BY {quoted(inner, unit)}"
        return f"SELECT {self.added(alias, named[1:])} FROM ({made}) AS {quoted(alias)}"

    def keyed(self) -> str:
        alias, output = _different(self.rng, 2)
        private = self.scene.names[0]
        condition = self.condition(alias, private)
        shown = f"{condition} AS {quoted(output)}, {self.sums(alias, private)}"
        return f"SELECT {shown} FROM {quoted(private)} AS {quoted(alias)} GROUP BY 1"

    def exists(self) -> str:
        left, right = _different(self.rng, 2)
        private, second, _ = self.scene.names
        tied = f"{quoted(left, self.scene.unit)} = {quoted(right, self.scene.unit)} AND {self.condition(right, second)}"
        inner = f"SELECT 1 FROM {quoted(second)} AS {quoted(right)} WHERE {tied}"
        shown = self.sums(left, private)
        return f"SELECT {shown} FROM {quoted(private)} AS {quoted(left)} WHERE EXISTS ({inner})"

    # Parts of them

    def sums(self, alias: str, called: str) -> str:
        columns = self.scene.numbers(called)
        return self.added(alias, self.rng.sample(columns, self.rng.randint(1, len(columns))))

    def added(self, alias: str, names: Sequence[str]) -> str:
        return ", ".join(f"sum({quoted(alias, name)})" for name in names)

    def condition(self, alias: str, called: str) -> str:
        column = self.rng.choice(self.scene.numbers(called))
        bounds = next(held.bounds for held in self.scene.columns[called] if held.name == column)
        assert bounds is not None
        return f"{quoted(alias, column)} > {int(bounds[0]) + self.rng.randint(1, 8)}"

    def made(self, inner: str) -> tuple[str, list[str]]:
        """Some columns under new names."""
        private = self.scene.names[0]
        columns = self.scene.numbers(private)
        names = _different(self.rng, len(columns))
        shown = [f"{quoted(inner, own)} AS {quoted(name)}" for own, name in zip(columns, names, strict=True)]
        return f"SELECT {', '.join(shown)} FROM {quoted(private)} AS {quoted(inner)}", names


KINDS = (
    *(Questions.plain, Questions.unnamed, Questions.own_join, Questions.public_join, Questions.subquery),
    *(Questions.view, Questions.grouped, Questions.keyed, Questions.exists),
)
