"""UNION ALL of private rows: the rows of each unit put together, from tables that hold the same units."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, TooHeavy, TypeMisfit
from hubbub.policy.tables import Value
from hubbub.query.check.shape import ColumnFacts
from hubbub.query.expression import Column, Expression
from hubbub.query.functions import unite_kinds as kind_of
from hubbub.query.ops import Project, RelationUnion
from hubbub.query.read.relation import Derived, Reader, SubqueryColumn, Views
from hubbub.query.read.scalars import alike

_MOST_BRANCHES = 50


def read_union(reader: Reader, node: exp.SetOperation, views: Views) -> Derived:
    """All rows of the branches, column beside column by their places; names are those of the first."""
    branches = _branches(reader, node)
    if len(branches) > _MOST_BRANCHES:
        raise TooHeavy(f"{len(branches):,} queries are put together. Take at most {_MOST_BRANCHES}.")
    found = [reader.derive(branch, views) for branch in branches]
    reader.look(node)
    first = found[0]
    for branch, one in zip(branches, found, strict=True):
        reader.look(branch)
        if one.unit is None or first.unit is None:
            raise NotOwned("A branch of UNION ALL is public, and its rows belong to nobody. Take private tables only.")
        if one.unit.type is not first.unit.type:
            raise NotOwned(f"Branches are about units that are {first.unit.type} and {one.unit.type}. Ask apart.")
        if len(one.outputs) != len(first.outputs):
            raise NotAllowed(
                f"Branches have {len(first.outputs)} and {len(one.outputs)} columns. SELECT as many in each."
            )
        if [own.facts.unit for own in one.outputs] != [own.facts.unit for own in first.outputs]:
            raise NotOwned("The unit's column stands at different places of the branches. SELECT it at the same one.")
    columns = list(zip(*(one.outputs for one in found), strict=True))
    values = [_alike(reader, branches, column) for column in columns]
    names = [f"column {place}" for place in range(len(columns))]
    inputs = tuple(
        Project(
            input=one.relation,
            columns=tuple((name, value[place]) for name, value in zip(names, values, strict=True)),
        )
        for place, one in enumerate(found)
    )
    outputs = []
    for name, column, value in zip(names, columns, values, strict=True):
        kind = kind_of("UNION ALL", value, nullable=any(one.kind.nullable for one in value))
        made = Column(name, kind)
        same = all(one.expression == each for one, each in zip(column, value, strict=True))
        facts = _facts([one.facts for one in column], made, same=same)
        outputs.append(
            SubqueryColumn(name=column[0].name, expression=made, facts=facts, values=_values(column, same=same))
        )
    return Derived(relation=RelationUnion(inputs=inputs), outputs=tuple(outputs), unit=first.unit)


def _branches(reader: Reader, node: exp.Expr) -> list[exp.Expr]:
    """List the queries that are put together, from left to right."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, exp.SetOperation):
            found.append(one)
            continue
        reader.look(one)
        if not isinstance(one, exp.Union) or one.args.get("distinct"):
            raise NotOwned(
                f"{type(one).__name__.upper()} compares rows of different people. Take UNION ALL, or SELECT DISTINCT "
                "with the unit."
            )
        plain = {"this", "expression", "distinct"} | ({"with_"} if one is node else set())
        if any(value for name, value in one.args.items() if name not in plain):
            raise NotAllowed("UNION ALL takes queries, and nothing else: no ORDER BY, LIMIT, BY NAME.")
        waiting += [one.expression, one.this]
    return found


def _alike(reader: Reader, branches: Sequence[exp.Expr], column: Sequence[SubqueryColumn]) -> tuple[Expression, ...]:
    reader.look(branches[-1])
    values = alike(*(one.expression for one in column))
    if len({value.kind.type for value in values}) != 1:
        kinds = ", ".join(str(value.kind) for value in values)
        raise TypeMisfit(f"Column {column[0].name!r} of UNION ALL would hold ({kinds}). Give it one type.")
    return values


def _facts(parts: Sequence[ColumnFacts], made: Column, *, same: bool) -> ColumnFacts:
    """Return the facts that hold in every branch, with bounds that cover those of all."""
    bounds = [one.bounds for one in parts if one.bounds is not None]
    covered = (min(low for low, _ in bounds), max(high for _, high in bounds)) if len(bounds) == len(parts) else None
    steps = {one.step for one in parts}
    return ColumnFacts(
        kind=made.kind,
        bounds=covered,
        step=steps.pop() if same and len(steps) == 1 else None,
        unit=same and all(one.unit for one in parts),
        optional=any(one.optional for one in parts),
    )


def _values(column: Sequence[SubqueryColumn], *, same: bool) -> Callable[[], tuple[Value, ...] | None]:
    def values() -> tuple[Value, ...] | None:
        lists = [one.values() for one in column] if same else [None]
        if any(one is None for one in lists):
            return None
        return tuple(dict.fromkeys(value for one in lists if one is not None for value in one))

    return values
