"""Faults in what looks at several rows of one unit, each planted for as long as a block lasts.

Each is the way such an operation would be written without care. Held against a neighbour, every one shows.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

from hubbub.engines.lower import reduce, relations
from hubbub.engines.lower import relations as owners
from hubbub.engines.lower import unit_operations as own
from hubbub.engines.lower.scalars import Names
from hubbub.engines.lower.unit_operations import UNIT, LoweredRelation
from hubbub.engines.nodes.queries import Join, Query, Select
from hubbub.engines.nodes.scalars import Apply, Scalar
from hubbub.engines.nodes.words import STAR, alias, constant, function, infix, name, number, over, select, within
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Cap, JoinKind, JoinOwn, Match, Reduce, Reduced, Reduction, Window
from tests.engines.raw import raw
from tests.query.relating import Operation, Relations, kinds_of

CODE = "code"
Fault = Callable[[], AbstractContextManager[Any]]


def _in_place(module: Any, what: str, fault: Any) -> Fault:
    return lambda: mock.patch.object(module, what, fault)


def _in_one(what: str, module: Any, inner: str, fault: Any) -> Fault:
    """A fault in something that several operations share, seen by one of them alone."""
    honest = getattr(relations, what)

    def faulty(*given: Any) -> Any:
        with mock.patch.object(module, inner, fault):
            return honest(*given)

    return _in_place(relations, what, faulty)


def _keyed(rows: Query) -> Query:
    """The secrets of a statement are given to it, whether it looks at them or not."""
    return raw("SELECT * FROM (", rows, ") AS z WHERE coalesce($1, $2) IS NOT NULL")


def _first_rows(op: Cap, rows: LoweredRelation, fresh: own.Fresh) -> tuple[Query, Names]:
    """The rows that come first in the data."""
    rank = alias(over(function("row_number"), partition=[name(UNIT)]), "rank")
    ranked = select(within(rows.settle()), STAR, rank)
    kept = select(within(ranked), name(UNIT), *rows.columns, where=[infix("<=", name("rank"), number(op.most))])
    return _keyed(kept), rows.names


def _few_bits(op: Cap, rows: LoweredRelation, fresh: own.Fresh) -> tuple[Query, Names]:
    """A code of the unit in place of the unit: now and then two units have the same."""
    code = infix("%", raw("hash(", name(UNIT), ")"), number(4))
    order = [own.hash_content(rows.columns or [number(0)]), name(UNIT), *rows.columns]
    rank = alias(over(function("row_number"), partition=[code], order=order), "rank")
    ranked = select(within(rows.settle()), STAR, rank)
    kept = select(within(ranked), name(UNIT), *rows.columns, where=[infix("<=", name("rank"), number(op.most))])
    return _keyed(kept), rows.names


_reduced = reduce.reduce_rows


def _packed(op: Reduce, rows: LoweredRelation, fresh: own.Fresh) -> tuple[Query, Names]:
    """Unit and keys written one after the other: the unit "a" with the key "b" is the unit "" with the key "ab"."""
    found, names = _reduced(op, rows, fresh)
    if rows.unit is None:
        return found, names
    keys = [part for key, _ in op.keys for part in (", ", name(names[key]))]
    code = raw("concat(", name(UNIT), *keys, ")")
    codes = select(within(found), STAR, alias(code, CODE))
    shown = [alias(function("min", name(one)), one) for one in (UNIT, *names.values())]
    return select(within(codes), *shown, by=[name(CODE)]), names


_reduction = reduce._reduction


def _first_value(one: Reduced, value: Scalar) -> Scalar:
    return raw("first(", value, ")") if one.reduction in {Reduction.LEAST, Reduction.MOST} else _reduction(one, value)


def _unrounded(one: Reduced, value: Scalar) -> Scalar:
    return value


@contextmanager
def totals_of_floats() -> Iterator[None]:
    """Reals are added up as they are, in the order in which they come."""
    with mock.patch.object(reduce, "_steps", _unrounded), mock.patch.object(reduce, "_total", lambda one, steps: steps):
        yield


_windowed = own.add_window


def _over_everyone(op: Window, rows: LoweredRelation, fresh: own.Fresh) -> tuple[Query, Names]:
    """A window that has no unit in its partition."""

    def loose(called: Apply, *, partition: Any, order: Any = ()) -> Scalar:
        return over(called, partition=[one for one in partition if one != name(UNIT)], order=order)

    with mock.patch.object(own, "over", loose):
        return _windowed(op, rows, fresh)


_joined_own = own.join_own


def _left_unit(op: JoinOwn, left: LoweredRelation, right: LoweredRelation) -> tuple[Query, Names]:
    """Rows of the right side alone, without their unit."""

    def first_only(called: Any, *given: Scalar) -> Scalar:
        return given[0] if called == "coalesce" else function(called, *given)

    with mock.patch.object(own, "function", first_only):
        return _joined_own(op, left, right)


def _full(made: Relations, rows: Any) -> Any:
    other = made.another(rows)
    return JoinOwn(input=rows, other=other, kind=JoinKind.FULL, keys=made.keys(rows, other, 0))


def _with_private(made: Relations, rows: Any) -> Any:
    other = made.another(rows)
    return Match(input=rows, other=other, keys=made.keys(rows, other, 0), without=made.rng.random() < 0.5)


def _by_text(made: Relations, rows: Any) -> Any:
    texts = [(f"key {one.name}", one) for one in kinds_of(rows) if one.kind.type is Type.TEXT and one.name != "s.who"]
    return Reduce(input=rows, keys=tuple(texts[:1]))


def _sums(made: Relations, rows: Any) -> Any:
    reals = [one for one in kinds_of(rows) if one.kind.type is Type.REAL]
    clamp = Fraction(-(1 << 40)), Fraction(1 << 40)
    totals = [
        Reduced(name=f"sum {one.name}", reduction=Reduction.TOTAL, argument=one, kind=of(Type.REAL), clamp=clamp)
        for one in reals
    ]
    return Reduce(input=rows, keys=(), columns=tuple(totals))


_owned = owners.find_owners


def _nobodys(table: Any, shown: Any, path: Any, unit: str, **given: Any) -> Query:
    """Rows that find no unit are kept, and have one in common."""
    found = _owned(table, shown, path, unit, **given)
    if not path:
        return found
    kind = owners.unit_column(table, path, unit, given["tables"]).kind
    unknown = name(UNIT, of="o")
    shared = alias(function("coalesce", unknown, constant("" if kind.type is Type.TEXT else 5, kind)), UNIT)
    assert isinstance(found, Select)
    assert isinstance(found.source, Join)
    assert unknown in found.shown
    shown = tuple(shared if one == unknown else one for one in found.shown)
    return replace(found, source=replace(found.source, form="left"), shown=shown)


def _first_owner(table: Any, shown: Any, path: Any, unit: str, **given: Any) -> Query:
    """A row belongs to whoever has the next key: keys are compared by a part of them, and are not unique any more."""
    with mock.patch.object(owners, "_in_common", lambda value, one, other: raw("(hash(", value, ") % 3)")):
        return _owned(table, shown, path, unit, **given)


OWN: dict[str, tuple[Fault, Operation]] = {
    "windows_tied": (_in_place(own, "complete_order", lambda order, rows: list(order)), Relations.window),
    "window_over_everyone": (_in_place(relations, "add_window", _over_everyone), Relations.window),
    "first_value_of_a_unit": (_in_place(reduce, "_reduction", _first_value), Relations.reduce),
    "totals_of_floats": (totals_of_floats, _sums),
    "packed_key": (_in_place(relations, "reduce_rows", _packed), _by_text),
    "match_uncorrelated": (_in_one("match_rows", own, "same_unit", lambda *sides: []), _with_private),
    "join_without_unit": (_in_one("join_own", own, "same_unit", lambda *sides: []), Relations.join_own),
    "full_join_of_nobody": (_in_place(relations, "join_own", _left_unit), _full),
    "cap_by_data_order": (_in_place(relations, "cap_rows", _first_rows), Relations.cap),
    "cap_of_packed_units": (_in_place(relations, "cap_rows", _few_bits), Relations.cap),
    "lost_rows_of_one_owner": (_in_place(relations, "find_owners", _nobodys), Relations.leading),
    "path_by_keys_not_unique": (_in_place(relations, "find_owners", _first_owner), Relations.leading),
}
"""Each with an operation that it is in."""
