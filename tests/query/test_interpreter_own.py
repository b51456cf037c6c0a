"""What the reference interpreter says of operations on several rows of one unit, on cases small enough to see."""

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from hubbub.policy.kinds import Kind, Type, integer, of
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinKind,
    JoinOwn,
    Match,
    Project,
    Ranking,
    Reduce,
    Reduced,
    Reduction,
    Relation,
    RelationUnion,
    Scan,
    ScanColumn,
    Window,
)
from tests.query import interpreter
from tests.query.interpreter import Unsound

K, V = Column("a.k", of(Type.TEXT)), Column("a.v", integer(-100, 100))
K2, W = Column("b.k", of(Type.TEXT)), Column("b.w", of(Type.REAL))
LEFT = Scan(table="a", columns=(ScanColumn("a.k", K.kind, "k"), ScanColumn("a.v", V.kind, "v")), unit="who")
RIGHT = Scan(table="b", columns=(ScanColumn("b.k", K2.kind, "k"), ScanColumn("b.w", W.kind, "w")), unit="who")
PUBLIC = Scan(table="p", columns=(ScanColumn("p.k", of(Type.TEXT), "k"),), unit=None)


def _rows(names: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


TABLES: interpreter.Tables = {
    "a": _rows("who k v", (1, "x", 5), (1, "x", 5), (1, None, 7), (2, "x", None), (2, "y", -3), (None, "x", 9)),
    "b": _rows("who k w", (1, "x", 0.5), (1, None, 1.0), (1, "x", 2.0), (3, "z", None), (2, "q", 1.5)),
    "p": _rows("k", ("x",), ("x",), (None,)),
}


def found(op: Relation) -> Counter[tuple[Any, ...]]:
    return Counter((unit, *row.values()) for unit, row in interpreter.relation(op, TABLES))


MATCHED = {(1, "x", 5, "x", 0.5): 2, (1, "x", 5, "x", 2.0): 2}
LEFT_ALONE = {(1, None, 7, None, None): 1, (2, "x", None, None, None): 1, (2, "y", -3, None, None): 1}
RIGHT_ALONE = {(1, None, None, None, 1.0): 1, (3, None, None, "z", None): 1, (2, None, None, "q", 1.5): 1}


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (JoinKind.INNER, MATCHED),
        (JoinKind.LEFT, MATCHED | LEFT_ALONE),
        (JoinKind.FULL, MATCHED | LEFT_ALONE | RIGHT_ALONE),
    ],
)
def test_joins_of_one_unit(kind: JoinKind, rows: dict[Any, int]) -> None:
    """Another unit's "x" is not one's own, and missing keys equal nothing."""
    assert found(JoinOwn(input=LEFT, other=RIGHT, kind=kind, keys=((K, K2),))) == rows


def test_a_join_without_keys_is_every_pair_of_a_unit() -> None:
    many = Counter(row[0] for row in found(JoinOwn(input=LEFT, other=RIGHT, kind=JoinKind.INNER)).elements())
    assert many == {1: 9, 2: 2}


@pytest.mark.parametrize("without", [False, True])
def test_matching(without: bool) -> None:
    keys = ((K, K2),)
    own = found(Match(input=LEFT, other=RIGHT, keys=keys, without=without))
    public = found(Match(input=LEFT, other=PUBLIC, keys=((K, Column("p.k", of(Type.TEXT))),), without=without))
    rest = {(1, None, 7): 1, (2, "y", -3): 1}
    assert own == (rest | {(2, "x", None): 1} if without else {(1, "x", 5): 2})
    assert public == (rest if without else {(1, "x", 5): 2, (2, "x", None): 1})
    empty = Filter(input=PUBLIC, condition=literal(False))
    assert found(Match(input=LEFT, other=empty, without=without)) == (found(LEFT) if without else {})
    assert found(Match(input=LEFT, other=PUBLIC, without=without)) == ({} if without else found(LEFT))


def test_caps_keep_what_is_chosen() -> None:
    op = Cap(input=LEFT, most=2)
    kept = interpreter.relation(op, TABLES, lambda op, unit, rows: rows[-op.most :])
    assert [(unit, row["a.v"]) for unit, row in kept] == [(1, 5), (1, 7), (2, None), (2, -3)]
    assert sum(found(op).values()) == 4
    assert found(Cap(input=LEFT, most=3)) == found(LEFT)


def reduced(
    reduction: Reduction, argument: Expression | None, kind: Kind, keys: tuple[Any, ...] = (), **more: Any
) -> Counter[tuple[Any, ...]]:
    column = Reduced(name="r", reduction=reduction, argument=argument, kind=kind, **more)
    return found(Reduce(input=LEFT, keys=keys, columns=(column,)))


COUNT = integer(0, 9, nullable=False)


def test_reductions() -> None:
    by_key = (("k", K),)
    assert reduced(Reduction.ROWS, None, COUNT) == {(1, 3): 1, (2, 2): 1}
    assert reduced(Reduction.ROWS, V, COUNT) == {(1, 3): 1, (2, 1): 1}
    assert reduced(Reduction.ROWS, None, COUNT, by_key) == {
        (1, "x", 2): 1, (1, None, 1): 1, (2, "x", 1): 1, (2, "y", 1): 1,
    }  # fmt: skip
    assert reduced(Reduction.DISTINCT, V, COUNT) == {(1, 2): 1, (2, 1): 1}
    assert reduced(Reduction.LEAST, K, K.kind) == {(1, "x"): 1, (2, "x"): 1}
    assert reduced(Reduction.MOST, V, V.kind, by_key)[2, "x", None] == 1
    assert found(Reduce(input=LEFT, keys=by_key)) == {(1, "x"): 1, (1, None): 1, (2, "x"): 1, (2, "y"): 1}


def test_totals_are_clamped_and_rounded_row_by_row() -> None:
    whole = integer(-1000, 1000)
    ends = Fraction(-2), Fraction(6)
    assert reduced(Reduction.TOTAL, V, whole) == {(1, 17): 1, (2, -3): 1}
    assert reduced(Reduction.TOTAL, V, whole, clamp=ends) == {(1, 16): 1, (2, -2): 1}
    assert reduced(Reduction.TOTAL, V, integer(-1, 10)) == {(1, 10): 1, (2, -1): 1}
    assert reduced(Reduction.TOTAL, V, of(Type.REAL), clamp=ends, grid=Fraction(4)) == {(1, 16.0): 1, (2, 0.0): 1}
    assert reduced(Reduction.TOTAL, V, whole, (("k", K),))[2, "x", None] == 1


def test_a_reduction_that_breaks_its_promise_is_unsound() -> None:
    with pytest.raises(Unsound):
        reduced(Reduction.TOTAL, V, integer(0, 9, nullable=False), (("k", K),))


def window(ranking: Ranking, order: tuple[Any, ...], **more: Any) -> list[tuple[Any, ...]]:
    """Of the first unit; by value and result."""
    argument = V if ranking in {Ranking.LAG, Ranking.LEAD} else None
    op = Window(input=LEFT, name="w", ranking=ranking, argument=argument, order=order, **more)
    rows = [row for unit, row in interpreter.relation(op, TABLES) if unit == 1]
    return [(row["a.v"], row["w"]) for row in rows]


def test_windows() -> None:
    up, down = (V, False), (V, True)
    assert window(Ranking.ROW_NUMBER, (down,)) == [(7, 1), (5, 2), (5, 3)]
    assert window(Ranking.ROW_NUMBER, ()) == [(5, 1), (5, 2), (7, 3)], "all columns complete the order"
    assert window(Ranking.RANK, (up,)) == [(5, 1), (5, 1), (7, 3)]
    assert window(Ranking.DENSE_RANK, (up,)) == [(5, 1), (5, 1), (7, 2)]
    assert window(Ranking.RANK, ()) == [(5, 1), (5, 1), (7, 1)]
    assert window(Ranking.LAG, (up,)) == [(5, None), (5, 5), (7, 5)]
    assert window(Ranking.LEAD, (up,), offset=2) == [(5, 7), (5, None), (7, None)]
    assert window(Ranking.LAG, (up,), offset=0) == [(5, 5), (5, 5), (7, 7)]
    assert window(Ranking.ROW_NUMBER, ((K, True),)) == [(5, 1), (5, 2), (7, 3)], "missing values come last"
    assert window(Ranking.ROW_NUMBER, ((K, False),), part=(call("gt", V, literal(5)),)) == [(5, 1), (5, 2), (7, 1)]


def test_unions_put_rows_together() -> None:
    made = [Project(input=one, columns=(("k", column),)) for one, column in ((LEFT, K), (RIGHT, K2))]
    many = found(RelationUnion(inputs=(made[0], made[1])))
    assert many == found(made[0]) + found(made[1])
    assert many[1, "x"] == 4
