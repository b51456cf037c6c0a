"""Relations and aggregates as one DuckDB statement.

Names in the statement are ours (the unit, a row's columns, codes of groups); a table's own names appear once, quoted,
where it is read. Groups are codes: the place of a combination of keys in the cross product of the public values.

Capacity: a row adds at most 2^63 steps, a unit at most 2^63 to a group: both are checked before anything is read. So
2^64 rows would be needed to leave the 128 bits of HUGEINT, more than any engine handles within a time limit.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlglot import exp

from hubbub.engines.lower import (
    Names,
    Node,
    binary,
    case,
    cast,
    constant,
    engine_type,
    function,
    lower,
    matched,
    name,
    try_cast,
)
from hubbub.engines.steps import bounded, steps
from hubbub.errors import CapacityError, ParameterError, PolicyError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, of
from hubbub.policy.tables import Table
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Aggregate, Filter, Group, JoinKind, JoinPublic, Measure, Project, Relation, Scan

UNIT = "unit"
CODE = "code"
FEW = 16
"""Rows of a unit in a group, up to which its groups are chosen before they are added up."""

_MOST_PROPORTION = 1 << 20

From = Mapping[str, Node]
"""What stands behind FROM for each declared table."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The public values of one group, as a table that the statement joins with: each value with its place."""

    table: str
    type: str
    places: tuple[int, ...]
    values: tuple[str | None, ...]
    """As text, which the engine casts to the type."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, and the tables of public keys that it needs."""

    sql: str
    keys: tuple[Keys, ...] = ()


def sql(node: Node) -> str:
    """The text of a statement."""
    return node.sql(dialect="duckdb", comments=False, copy=False)


class Lowering:
    """Relations over declared tables, each as a SELECT with the engine's names of its columns."""

    def __init__(self, tables: Mapping[str, Table], origins: From) -> None:
        self._tables = tables
        self._origins = origins
        self._count = itertools.count()

    def relation(self, op: Relation) -> tuple[exp.Select, Names]:
        """Rows with their unit, if they have one, beside their columns."""
        match op:
            case Scan():
                return self._scan(op)
            case Filter(input=below, condition=condition):
                inner, names = self.relation(below)
                return select(inner, exp.Star()).where(lower(condition, names), copy=False), names
            case Project(input=below, columns=columns):
                inner, names = self.relation(below)
                made = {column: self._fresh() for column, _ in columns}
                shown = [alias(lower(one, names), made[column]) for column, one in columns]
                return select(inner, *unit_of(below), *shown), made
            case JoinPublic():
                return self._join(op)

    def _fresh(self) -> str:
        return f"c{next(self._count)}"

    def _scan(self, op: Scan) -> tuple[exp.Select, Names]:
        table = self._tables[op.table]
        names = {column: self._fresh() for column, _ in op.columns}
        shown = [alias(safe(name(_declared(table, column)), kind), names[column]) for column, kind in op.columns]
        found = exp.Select(expressions=shown or [exp.Null()]).from_(self._origins[op.table].copy(), copy=False)
        if op.unit is None:
            return found, names
        declared = table.column(op.unit)
        if declared is None:
            raise PolicyError(f"Table {op.table} has no column {op.unit}, its unit. Declare it.", name=op.table)
        found = found.select(alias(safe(name(declared.name), declared.kind), UNIT), copy=False)
        known = exp.Not(this=exp.Is(this=name(UNIT), expression=exp.Null()))
        return select(found, exp.Star()).where(known, copy=False), names

    def _join(self, op: JoinPublic) -> tuple[exp.Select, Names]:
        if unit_of(op.public):
            raise ParameterError("public", "a relation of public tables", op.public)
        left, mine = self.relation(op.input)
        right, theirs = self.relation(op.public)
        pairs = [binary(exp.EQ, *matched(one, other, (mine, theirs))) for one, other in op.keys]
        joined = select(left, exp.Star()).join(
            right.subquery("r", copy=False),
            on=exp.and_(*pairs, copy=False),
            copy=False,
            join_type="left" if op.kind is JoinKind.LEFT else "inner",
        )
        return joined, {**mine, **theirs}


def aggregate(op: Aggregate, tables: Mapping[str, Table], origins: From, *, secret: tuple[int, int]) -> Statement:
    """The tallies of all groups that have rows: a code and sums as text, in no order.

    ``secret`` keys the hash that chooses the groups of a unit. They can be chosen among rows or among sums for each
    unit and group: the same groups. The first is faster where a unit has few rows in a group, since fewer are added up;
    the second where it has many. What the tallies allow one unit decides, which is public.
    """
    keys = tuple(_keys(index, group) for index, group in enumerate(op.groups))
    cells = math.prod(len(group.values) for group in op.groups)
    coded = _coded(op, Lowering(tables, origins), keys)
    if op.most_groups >= cells:
        pairs = _pairs(op, coded, grouped=bool(keys))
    elif 0 < rows_for_a_pair(op) <= FEW:
        pairs = _pairs(op, _chosen(coded, op.most_groups, secret, function("dense_rank")), grouped=True)
    else:
        pairs = _chosen(_pairs(op, coded, grouped=True), op.most_groups, secret, exp.RowNumber())
    totals = [_total(op, index) for index in range(len(op.tallies))]
    shown = [name(CODE) if keys else alias(exp.Literal.number(0), CODE)]
    whole = select(pairs, *shown, *(cast(total, "VARCHAR") for total in totals))
    return Statement(sql(whole.group_by(name(CODE), copy=False) if keys else whole), keys)


def _coded(op: Aggregate, lowering: Lowering, keys: Sequence[Keys]) -> exp.Select:
    """Each row that is in a public group: its unit, the group's code, and the steps or presence that tallies need."""
    rows, names = lowering.relation(op.input)
    group_columns = [alias(lower(group.expression, names), f"g{i}") for i, group in enumerate(op.groups)]
    arguments = [
        alias(lower(tally.argument, names), f"a{i}") for i, tally in enumerate(op.tallies) if tally.argument is not None
    ]
    coded = select(select(rows, name(UNIT), *group_columns, *arguments), name(UNIT))
    code: Node | None = None
    for index, (one, group) in enumerate(zip(keys, op.groups, strict=True)):
        table = exp.to_identifier(one.table, quoted=True)
        mine, theirs = name(f"g{index}"), exp.column("value", table=table.copy(), quoted=True)
        same: type[exp.Binary] = exp.NullSafeEQ if None in one.values else exp.EQ
        coded = coded.join(exp.Table(this=table), on=same(this=mine, expression=theirs), join_type="inner", copy=False)
        place = exp.column("place", table=table.copy(), quoted=True)
        code = place if code is None else binary(exp.Add, binary(exp.Mul, code, _whole(len(group.values))), place)
    shown = [] if code is None else [alias(code, CODE)]
    for index, tally in enumerate(op.tallies):
        if tally.argument is not None:
            value = name(f"a{index}")
            shown.append(
                alias(
                    steps(tally, value, tally.argument.kind)
                    if tally.measure is Measure.TOTAL
                    else case((exp.Not(this=exp.Is(this=value, expression=exp.Null())), exp.true())),
                    f"s{index}",
                )
            )
    return coded.select(*shown, copy=False)


def _pairs(op: Aggregate, coded: exp.Select, *, grouped: bool) -> exp.Select:
    """What each unit adds to each of its groups, within the tally's bounds."""
    shown: list[Node] = []
    for index, tally in enumerate(op.tallies):
        value = None if tally.argument is None else name(f"s{index}")
        many = function("count", exp.Star() if value is None else value)
        match tally.measure:
            case Measure.UNITS if value is None:
                continue
            case Measure.UNITS:
                made = cast(binary(exp.GT, many, exp.Literal.number(0)), "BIGINT")
            case Measure.ROWS:
                made = _rows(many, tally.bounds, always=value is None)
            case Measure.TOTAL:
                if value is None:
                    raise ParameterError("argument", "given for a total", None)
                made = bounded(_proportioned(function("sum", value), many, tally.most_rows), tally.bounds)
        shown.append(alias(made, f"t{index}"))
    by = [name(UNIT), *([name(CODE)] if grouped else [])]
    return select(coded, *by, *shown).group_by(*(one.copy() for one in by), copy=False)


def _proportioned(total: Node, many: Node, most: int | None) -> Node:
    """A total of more than so many values, in proportion. 2^63 steps a row, 2^40 rows and 2^20 times fit 128 bits."""
    if most is None:
        return total
    if most > _MOST_PROPORTION:
        raise CapacityError(f"A unit may count with at most {_MOST_PROPORTION:,} rows in a group. Declare fewer.")
    whole = cast(_whole(most), "HUGEINT")
    cut = exp.Paren(this=exp.IntDiv(this=binary(exp.Mul, total, whole), expression=cast(many, "HUGEINT")))
    return case((binary(exp.GT, many.copy(), _whole(most)), cut), otherwise=total.copy())


def _rows(many: Node, bounds: tuple[int, int], *, always: bool) -> Node:
    """Rows, clamped. A unit that has a row in a group at all, but no value, adds nothing."""
    if bounds[0] <= 0:
        top = constant(max(bounds[1], bounds[0]), of(Type.INTEGER)) if bounds[1] < INT64[1] else None
        return many if top is None else function("least", many, top)
    counted = bounded(many, bounds)
    return counted if always else case((binary(exp.GT, many.copy(), _whole(0)), counted), otherwise=_whole(0))


def rows_for_a_pair(op: Aggregate) -> int:
    """How many rows a unit may usefully have in one group, as its bounds see it; 0 where they do not say."""
    found = [0]
    for tally in op.tallies:
        if tally.measure is Measure.ROWS:
            found.append(tally.linf)
        elif tally.measure is Measure.TOTAL and tally.clamp is not None:
            step = max(abs(end - tally.origin) for end in tally.clamp) / tally.grid
            found.append(math.ceil(tally.linf / step) if step else 1)
    return max(found)


def _chosen(rows: exp.Select, most: int, secret: tuple[int, int], rank: Node) -> exp.Select:
    """At most so many groups of a unit, by a hash of unit and group under the secret; equal hashes by the code.

    The unit itself separates units, so no collision can let one unit's groups decide about another's. The last hash
    is of unit, group and secret together: hashing them one by one would prefer the same groups in every unit.
    """
    low, high = (cast(exp.Literal.number(str(part)), "UBIGINT") for part in secret)
    unit = function("hash", name(UNIT), low)
    code = function("xor", cast(name(CODE), "UBIGINT"), high)
    order = exp.Order(
        expressions=[
            exp.Ordered(this=function("hash", function("xor", unit, code)), nulls_first=False),
            exp.Ordered(this=name(CODE), nulls_first=False),
        ]
    )
    number = exp.Window(this=rank, partition_by=[name(UNIT)], order=order)
    ranked = select(rows, exp.Star(), alias(number, "rank"))
    return select(ranked, exp.Star()).where(binary(exp.LTE, name("rank"), _whole(most)), copy=False)


def _total(op: Aggregate, index: int) -> Node:
    tally = op.tallies[index]
    if tally.measure is Measure.UNITS and tally.argument is None:
        return function("count", exp.Star())
    return exp.Coalesce(this=function("sum", name(f"t{index}")), expressions=[exp.Literal.number(0)])


def fanout(relation: Relation, keys: Sequence[Expression], tables: Mapping[str, Table], origins: From) -> Statement:
    """How many rows of a public relation share one combination of keys; missing keys equal nothing."""
    rows, names = Lowering(tables, origins).relation(relation)
    made = [alias(lower(key, names), f"k{index}") for index, key in enumerate(keys)]
    columns = [name(f"k{index}") for index in range(len(made))]
    known = [exp.Not(this=exp.Is(this=column, expression=exp.Null())) for column in columns]
    counted = select(select(rows, *made), alias(function("count", exp.Star()), "n")).where(*known)
    counted = counted.group_by(*(column.copy() for column in columns))
    most = exp.Coalesce(this=function("max", name("n")), expressions=[exp.Literal.number(0)])
    return Statement(sql(select(counted, cast(most, "VARCHAR"))))


def values(
    relation: Relation, expression: Expression, tables: Mapping[str, Table], origins: From, *, most: int
) -> Statement:
    """The distinct values of an expression over a public relation, ascending, as text; one more than ``most``."""
    rows, names = Lowering(tables, origins).relation(relation)
    distinct = select(rows, alias(lower(expression, names), "v")).distinct()
    known = exp.Not(this=exp.Is(this=name("v"), expression=exp.Null()))
    found = select(distinct, cast(name("v"), "VARCHAR")).where(known).order_by(name("v")).limit(most + 1)
    return Statement(sql(found))


def safe(column: Node, kind: Kind) -> Node:
    """A column as its kind: what the type, the range or the calendar cannot hold is missing."""
    value = try_cast(column, engine_type(kind))

    def between(low: Node, high: Node) -> Node:
        return case((exp.Between(this=value, low=low, high=high), value.copy()))

    match kind.type:
        case Type.INTEGER if kind.range != INT64:
            return between(*(constant(end, kind) for end in kind.range))
        case Type.REAL:
            return case((function("isfinite", value), value.copy()))
        case Type.DATE:
            return between(constant(date.min, kind), constant(date.max, kind))
        case Type.TIMESTAMP:
            return between(constant(datetime.min, kind), constant(datetime.max, kind))
    return value


def select(inner: exp.Select, *shown: Node) -> exp.Select:
    """SELECT … FROM (inner)."""
    return exp.Select(expressions=list(shown)).from_(inner.subquery("q", copy=False), copy=False)


def alias(node: Node, called: str) -> Node:
    """A named column."""
    return exp.Alias(this=node, alias=exp.to_identifier(called, quoted=True))


def unit_of(op: Relation) -> list[Node]:
    """The unit, where rows have one."""
    match op:
        case Scan(unit=unit):
            return [] if unit is None else [name(UNIT)]
        case Filter(input=below) | Project(input=below) | JoinPublic(input=below):
            return unit_of(below)


def _declared(table: Table, column: str) -> str:
    """A scan calls a column ``alias.column``, or by its own name."""
    parts = column.split(".")
    for start in range(len(parts)):
        declared = table.column(".".join(parts[start:]))
        if declared is not None:
            return declared.name
    raise PolicyError(f"Table {table.name} has no column {column}. Declare it.", name=table.name)


def _whole(value: int) -> Node:
    return constant(value, of(Type.INTEGER))


def _keys(index: int, group: Group) -> Keys:
    """The values as text. Two that are alike would put one row into two groups; one out of range is nobody's."""
    if len(set(group.values)) != len(group.values):
        raise ParameterError(f"values of {group.name}", "all different", group.values)
    kind = group.expression.kind
    limits = None if kind.type is not Type.INTEGER else INT128 if kind.wide else INT64
    listed = [
        (place, _as_text(value, group))
        for place, value in enumerate(group.values)
        if not isinstance(value, int) or limits is None or limits[0] <= value <= limits[1]
    ]
    return Keys(
        f"keys{index}", engine_type(kind), tuple(place for place, _ in listed), tuple(value for _, value in listed)
    )


def _as_text(value: Value, group: Group) -> str | None:
    match group.type, value:
        case _, None:
            return None
        case Type.BOOLEAN, bool():
            return str(value).lower()
        case Type.INTEGER, int() if not isinstance(value, bool):
            return str(value)
        case Type.REAL, float() if math.isfinite(value):
            return repr(value)
        case Type.TEXT, str():
            return value
        case Type.TIMESTAMP, datetime() if value.tzinfo is None:
            return value.isoformat(sep=" ")
        case Type.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
    raise ParameterError(f"values of {group.name}", f"constants of type {group.type}", value)
