"""Operations that look at several rows of one unit: capping, joins on the unit, matching, reducing, windows, unions.

Privacy:
    Claim: for tables that differ in the rows of one unit, what each of these makes of the other units' rows is the
        same multiset, under the same secrets.
    Proof: every partition, group and join condition has the unit itself in it (never a hash or a packing of it), so
        a result row depends on rows of its unit and on public ones alone. It depends on their multiset alone: whatever
        orders rows ends with all columns, so that rows which are still tied are alike in every column (zeros of both
        signs are made one zero first); sums are of whole numbers, exactly; the rest (count, least, most, existence)
        does not know an order.
    Needs: the claim of query.ops for the relations below; rows of one content are interchangeable above, which is so
        as nothing else of a row exists; the engine does not replace a window by a choice of its own
        (top_n_window_elimination is off).
    Ref: SOUNDNESS 1 to 3, 6 and 8.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hubbub.engines.lower.scalars import Names, lower, match_types, once
from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.scalars import Function, JoinForm, Name, Scalar, Tag, storage_of
from hubbub.engines.nodes.words import (
    NULL,
    STAR,
    TRUE,
    alias,
    case,
    cast,
    constant,
    descending,
    function,
    hash_keyed,
    infix,
    join,
    name,
    number,
    over,
    relation,
    select,
    union_all,
    with_once,
    within,
)
from hubbub.errors import ParameterError
from hubbub.policy.kinds import Kind, Type, of
from hubbub.query.check.shape import hull, shape
from hubbub.query.expression import Expression
from hubbub.query.ops import Cap, JoinKind, JoinOwn, Match, Ranking, RelationUnion, Window

UNIT = "unit"
COPY = "copy"
_FAR = 1 << 31
"""How far a window may look."""

Fresh = Callable[[], str]

FORMS: Mapping[JoinKind, JoinForm] = {JoinKind.INNER: "inner", JoinKind.LEFT: "left", JoinKind.FULL: "full"}
RANKINGS: Mapping[Ranking, Function] = {
    Ranking.ROW_NUMBER: "row_number",
    Ranking.RANK: "rank",
    Ranking.DENSE_RANK: "dense_rank",
    Ranking.LAG: "lag",
    Ranking.LEAD: "lead",
}
_Sides = tuple[tuple[RowSource, RowSource], list[Scalar]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredRelation:
    """A relation below: its query, what its columns are called in the engine, their kinds, and that of its unit."""

    query: Query
    names: Names
    kinds: Mapping[str, Kind]
    unit: Kind | None
    light: bool = False
    """Whether reading it again costs less than keeping its rows."""

    @property
    def owner(self) -> list[Name]:
        """Name the unit, where rows have one."""
        return [] if self.unit is None else [name(UNIT)]

    @property
    def columns(self) -> list[Name]:
        """Name the columns as the engine does."""
        return [name(one) for one in self.names.values()]

    def settle(self, *more: Scalar) -> Query:
        """Make equal values of the rows alike, and further columns out of them."""
        shown = [alias(alike(name(self.names[one]), kind), self.names[one]) for one, kind in self.kinds.items()]
        rows = select(within(self.query), *(self.owner + shown or [NULL]))
        return select(within(rows), STAR, *more) if more else rows


def alike(value: Scalar, kind: Kind) -> Scalar:
    """Make equal values of a column one and the same: a real zero has no sign."""
    if kind.type is not Type.REAL:
        return value
    zero = constant(0.0, kind)
    return once([value], lambda it: case((infix("=", it[0], zero), zero), otherwise=it[0]))


def cap_rows(op: Cap, rows: LoweredRelation, fresh: Fresh) -> tuple[Query, Names]:
    """Keep so many rows of a unit.

    They are ranked by the hash of unit, content and copy, then by these: which of some equal rows is which copy does
    not matter, and without copies the rarer of a unit's rows would be preferred. Equal rows have equal hashes wherever
    they are capped, so that a relation which is read twice keeps the same rows.

    Few units have too many rows. They are found first, and only their rows are ranked.
    """
    if rows.unit is None or op.most < 1:
        raise ParameterError("input", "a private relation, capped to at least one row", op.most)
    most, columns = number(op.most), rows.columns
    shared = fresh()
    once_only = not rows.light
    read: RowSource = relation(shared, called="r") if once_only else within(rows.settle(), "r")
    counted = select(read, name(UNIT), alias(function("count", STAR), "many"), by=[name(UNIT)])
    crowded = select(within(counted), name(UNIT), where=[infix(">", name("many"), most)])
    named = fresh()
    full = relation(named, called="f")
    same = [infix("=", name(UNIT, of="r"), name(UNIT, of="f"))]
    free = select(join(read, full, same, form="anti"), name(UNIT), *columns)
    copy = over(function("row_number"), partition=[name(UNIT), *columns])
    copies = select(join(read, full, same, form="semi"), name(UNIT), *columns, alias(copy, COPY))
    order = [hash_content([*columns, name(COPY)]), *columns, name(COPY)]
    rank = alias(over(function("row_number"), partition=[name(UNIT)], order=order), "rank")
    ranked = select(within(copies), name(UNIT), *columns, rank)
    kept = select(within(ranked), name(UNIT), *columns, where=[infix("<=", name("rank"), most)])
    both = with_once(crowded, named, union_all([free, kept]))
    return (with_once(rows.settle(), shared, select(within(both), STAR)) if once_only else both), rows.names


def hash_content(content: Sequence[Scalar]) -> Scalar:
    """Hash unit and content under the secrets. Ties are for whoever orders by it to break."""
    return hash_keyed(Tag.CAP, name(UNIT), *content)


def join_own(op: JoinOwn, left: LoweredRelation, right: LoweredRelation) -> tuple[Query, Names]:
    """Put rows beside those of the same unit with equal keys."""
    if left.unit is None or right.unit is None:
        raise ParameterError("other", "a private relation of the same units", op.kind)
    sides, pairs = _sides(op.keys, left, right)
    owners = name(UNIT, of="l"), name(UNIT, of="r")
    unit = function("coalesce", *owners) if op.kind is JoinKind.FULL else owners[0]
    shown = [alias(unit, UNIT), *left.columns, *right.columns]
    return select(join(*sides, pairs, form=FORMS[op.kind]), *shown), {**left.names, **right.names}


def match_rows(op: Match, rows: LoweredRelation, other: LoweredRelation) -> tuple[Query, Names]:
    """Keep rows that have a partner, or none; on the unit too, where the other side has one."""
    if rows.unit is None and other.unit is not None:
        raise ParameterError("other", "public, as the rows are", op.without)
    sides, pairs = _sides(op.keys, rows, other)
    both = join(*sides, pairs, form="anti" if op.without else "semi")
    shown: list[Scalar] = [*rows.owner, *rows.columns]
    return select(both, *(shown or [NULL])), rows.names


def _sides(keys: Sequence[tuple[Expression, Expression]], left: LoweredRelation, right: LoweredRelation) -> _Sides:
    """Return two sources with their keys as columns, and what must be equal. Missing keys equal nothing."""
    both = [match_types(one, other, (left.names, right.names)) for one, other in keys]
    made: tuple[list[Scalar], list[Scalar]] = [], []
    pairs = same_unit(left, right)
    for place, ((one, other), pieces) in enumerate(zip(keys, both, strict=True)):
        if one.kind.type is not other.kind.type:
            raise ParameterError("keys", "pairs of one type", (str(one.kind), str(other.kind)))
        for side, piece in enumerate(pieces):
            made[side].append(alias(alike(piece, one.kind), f"k{place}"))
        pairs.append(infix("=", name(f"k{place}", of="l"), name(f"k{place}", of="r")))
    sources = [
        within(select(within(part.query), *(part.owner + part.columns + added or [NULL])), called)
        for part, added, called in zip((left, right), made, ("l", "r"), strict=True)
    ]
    return (sources[0], sources[1]), pairs or [TRUE]


def same_unit(left: LoweredRelation, right: LoweredRelation) -> list[Scalar]:
    """Ask that two rows are of one unit; nothing, if one side has none."""
    if left.unit is None or right.unit is None:
        return []
    wide = storage_of(hull([left.unit, right.unit]))
    return [infix("=", *(cast(name(UNIT, of=side), wide) for side in ("l", "r")))]


def complete_order(order: Sequence[Scalar], rows: LoweredRelation) -> list[Scalar]:
    """Complete an order so that it ties only rows which are alike in everything."""
    return [*order, *rows.columns]


def add_window(op: Window, rows: LoweredRelation, fresh: Fresh) -> tuple[Query, Names]:
    """Give each row its place among those of its unit; what decides it is computed once, in columns of their own."""
    added = fresh()
    parts = [alias(alike(lower(one, rows.names), one.kind), f"p{place}") for place, one in enumerate(op.part)]
    orders = [alias(alike(lower(one, rows.names), one.kind), f"o{place}") for place, (one, _) in enumerate(op.order)]
    order = [
        descending(name(f"o{place}")) if falling else name(f"o{place}") for place, (_, falling) in enumerate(op.order)
    ]
    if op.ranking in {Ranking.LAG, Ranking.LEAD}:
        if op.argument is None or not 0 <= op.offset <= _FAR:
            raise ParameterError("argument", f"given for {op.ranking}, with an offset from 0 to {_FAR:,}", op.offset)
        called = function(RANKINGS[op.ranking], name("a"), number(op.offset))
        parts.append(alias(lower(op.argument, rows.names), "a"))
    else:
        called = function(RANKINGS[op.ranking])
    if op.ranking not in {Ranking.RANK, Ranking.DENSE_RANK}:
        order = complete_order(order, rows)
    within_unit = [*rows.owner, *(name(f"p{place}") for place in range(len(op.part)))]
    made = alias(over(called, partition=within_unit, order=order), added)
    shown = [*rows.owner, *rows.columns, made]
    return select(within(rows.settle(*parts, *orders)), *shown), {**rows.names, op.name: added}


def unite(op: RelationUnion, parts: Sequence[LoweredRelation]) -> tuple[Query, Names]:
    """Put relations one below the other, in the widest of their types."""
    if len({part.unit is None for part in parts}) != 1:
        raise ParameterError("inputs", "all private, or all public", len(parts))
    first = parts[0]
    kinds = shape(op)
    unit = hull([part.unit or of(Type.TEXT) for part in parts])
    branches = []
    for part in parts:
        shown = [alias(cast(name(UNIT), storage_of(unit)), UNIT)] if part.unit is not None else []
        shown += [alias(cast(name(part.names[one]), storage_of(kind)), first.names[one]) for one, kind in kinds.items()]
        branches.append(select(within(part.query), *(shown or [NULL])))
    return union_all(branches), first.names
