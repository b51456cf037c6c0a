"""Whole aggregates in one statement, against a few lines of plain Python."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.engines.duckdb.scan import quote_name, scan_value
from hubbub.engines.lower import relations
from hubbub.engines.lower.unit_sums import FEW, rows_for_a_pair
from hubbub.engines.nodes.words import relation
from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.kinds import INT128, Kind, integer
from hubbub.policy.tables import Table, TableColumn
from hubbub.query.expression import Column as Named
from hubbub.query.expression import literal
from hubbub.query.functions import call
from hubbub.query.ops import Aggregate, Filter, JoinKind, JoinPublic, Project, Scan, ScanColumn
from tests.engines.evaluating import (
    BOOLEAN,
    DATE,
    REAL,
    SHARED,
    TEXT,
    WHOLE,
    answered,
    group,
    rows_tally,
    scan,
    table_of,
    table_sql,
    total,
    units_tally,
)  # fmt: skip
from tests.engines.raw import printed

Rows = list[tuple[Any, ...]]
KEY, VALUE = Named("key", WHOLE), Named("value", WHOLE)
TABLE = table_of(
    TableColumn(name="who", kind=TEXT), TableColumn(name="key", kind=WHOLE), TableColumn(name="value", kind=WHOLE)
)


def contents(rows: Rows, kinds: tuple[Kind, ...] = (TEXT, WHOLE, WHOLE), names: str = "who, key, value") -> str:
    columns = ", ".join(f"c{index} AS {one}" for index, one in enumerate(names.split(", ")))
    return f"SELECT {columns} FROM {table_sql(kinds, rows)}"


def aggregate(*values: Any, most: int, tallies: Any = None, key: Named = KEY, table: Table = TABLE) -> Aggregate:
    if tallies is None:
        tallies = (rows_tally(3), units_tally(), total(VALUE, -10, 10, bounds=(-15, 15)), rows_tally(2, VALUE))
    return Aggregate(
        input=scan(table, *(c.name for c in table.columns if c.name != "who")),
        groups=(group(key, *values),) if values else (),
        tallies=tuple(tallies),
        most_groups=most,
    )


def by_hand(rows: Rows, values: tuple[Any, ...], most: int, *, grouped: bool = True) -> list[tuple[int, ...]]:
    """The four tallies above; of a unit's groups the first ones in the order of the keys."""
    pairs: dict[Any, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for who, key, value in rows:
        if who is not None and (not grouped or key in values):
            pairs[who][values.index(key) if grouped else 0].append(value)
    found = [[0, 0, 0, 0] for _ in (values if grouped else (0,))]
    for groups in pairs.values():
        for code in sorted(groups)[:most]:
            there = [value for value in groups[code] if value is not None]
            added = sum(min(max(value, -10), 10) for value in there)
            amounts = (min(len(groups[code]), 3), 1, min(max(added, -15), 15), min(len(there), 2))
            found[code] = [old + new for old, new in zip(found[code], amounts, strict=True)]
    return [tuple(one) for one in found]


def _with_hash(text: str, changed: str) -> str:
    assert text.count("hash(xor(") == 1
    return text.replace("hash(xor(", changed + "hash(xor(")


def without_hash(text: str) -> str:
    """All hashes equal, so that ties are all there is."""
    return _with_hash(text, "0 * ")


def coarse_hash(text: str) -> str:
    """One bit of hash."""
    return _with_hash(text, "1 & ")


def random_rows(seed: int, many: int = 300) -> Rows:
    rng = np.random.default_rng(seed)
    whole = rng.integers(-3, 8, size=(many, 3))
    names = [None if who < -1 else f"u{who}" for who in rng.integers(-2, 25, size=many)]
    values = [None if a == 0 else int(a * abs(a)) for a in whole[:, 1]]
    return [
        (who, None if key == -3 else int(key), value)
        for who, key, value in zip(names, whole[:, 0], values, strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_random_tables(seed: int) -> None:
    rows = random_rows(seed)
    for values in ((0, 1, 2, 3, 4), (7, None, 3, 99), (-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, None)):
        for most in (1, 2, len(values) - 1):
            op = aggregate(*values, most=most)
            assert answered(op, {"t": TABLE}, {"t": contents(rows)}, rewrite=without_hash) == by_hand(
                rows, values, most
            )
            # The fifth allows so many rows that sums come first.
            other = aggregate(*values, most=most, tallies=(*op.tallies, rows_tally(FEW + 1)))
            found = answered(other, {"t": TABLE}, {"t": contents(rows)}, rewrite=without_hash)
            assert [one[:4] for one in found] == by_hand(rows, values, most)
        op = aggregate(*values, most=len(values))
        assert answered(op, {"t": TABLE}, {"t": contents(rows)}) == by_hand(rows, values, len(values))
    assert answered(aggregate(most=1), {"t": TABLE}, {"t": contents(rows)}) == by_hand(rows, (0,), 1, grouped=False)


@pytest.mark.parametrize("rewrite", [lambda text: text, coarse_hash])
def test_row_order_and_threads_change_nothing(rewrite: Callable[[str], str]) -> None:
    rows = random_rows(11)
    op = aggregate(*range(-3, 8), most=2)
    wanted = answered(op, {"t": TABLE}, {"t": contents(rows)}, secret=(5, 6), rewrite=rewrite)
    for order in (rows[::-1], sorted(rows, key=str)):
        for threads in (1, 3):
            found = answered(op, {"t": TABLE}, {"t": contents(order)}, secret=(5, 6), threads=threads, rewrite=rewrite)
            assert found == wanted


@pytest.mark.parametrize("rewrite", [lambda text: text, coarse_hash])
def test_one_unit_moves_its_own_groups_alone(rewrite: Callable[[str], str]) -> None:
    """Ids that a careless packing would mix up; without one of them all others keep what they had."""
    ids = ["1", "11", "1,1", "1 1", "", "\0", "a\0", "1'", "u1", "U1", "é", "e\u0301"]
    rows: Rows = [(who, key, index % 7) for index, who in enumerate(ids) for key in range(index % 5, 8)]
    op = aggregate(*range(8), most=3, tallies=(units_tally(), rows_tally(1)))
    whole = answered(op, {"t": TABLE}, {"t": contents(rows)}, rewrite=rewrite)
    assert sum(one[0] for one in whole) == 3 * len(ids)
    for who in ids:
        less = answered(op, {"t": TABLE}, {"t": contents([row for row in rows if row[0] != who])}, rewrite=rewrite)
        moved = [before[0] - after[0] for before, after in zip(whole, less, strict=True)]
        assert sorted(moved) == [0] * 5 + [1] * 3


def test_groups_are_chosen_without_favour() -> None:
    """2,000 units with the same 8 groups keep 2 each: every group is kept by 500 or so (false alarm below 1e-6)."""
    rows = "SELECT 'u' || w AS who, k AS key, 0 AS value FROM range(2000) a(w), range(8) b(k)"
    op = aggregate(*range(8), most=2, tallies=(units_tally(),))
    found = [
        [one[0] for one in answered(op, {"t": TABLE}, {"t": rows}, secret=secret)]
        for secret in ((1, 2), (1, 3), (9, 2))
    ]
    spread = 5.9 * math.sqrt(2000 * 0.25 * 0.75)  # 24 counts, each beyond 5.9 sigma with probability below 4e-9
    assert all(abs(count - 500) < spread for counts in found for count in counts)
    assert all(sum(counts) == 4000 for counts in found)
    assert len({tuple(counts) for counts in found}) == 3


def test_both_ways_choose_the_same_groups() -> None:
    rows = random_rows(12)
    few, many = rows_tally(FEW), rows_tally(FEW + 1)
    assert [rows_for_a_pair(aggregate(most=1, tallies=(units_tally(), one))) for one in (few, many)] == [
        32,
        33,
    ]
    assert rows_for_a_pair(aggregate(most=1, tallies=(units_tally(),))) == 0
    assert rows_for_a_pair(aggregate(most=1, tallies=(total(VALUE, -10, 5, bounds=(-25, 25)),))) == 3
    found = [
        answered(aggregate(*range(8), most=3, tallies=(units_tally(), one)), {"t": TABLE}, {"t": contents(rows)})
        for one in (few, many)
    ]
    assert [one[0] for one in found[0]] == [one[0] for one in found[1]]


def test_kinds_of_units() -> None:
    listed: list[tuple[Kind, list[Any]]] = [(WHOLE, [1, 2, None]), (DATE, [date(2020, 1, 1), date(1, 1, 1), None])]
    for kind, ids in listed:
        table = table_of(TableColumn(name="who", kind=kind), TableColumn(name="key", kind=WHOLE))
        rows: Rows = [(who, key) for who in ids for key in range(3)] + [(ids[1], 1)]
        op = aggregate(0, 1, 2, most=2, tallies=(units_tally(), rows_tally(9)), table=table)
        found = answered(op, {"t": table}, {"t": contents(rows, (kind, WHOLE), "who, key")})
        assert sum(one[0] for one in found) == 4
        assert sum(one[1] for one in found) in {4, 5}


def test_zero_and_minus_zero_are_one_key() -> None:
    key = Named("key", REAL)
    table = table_of(TableColumn(name="who", kind=WHOLE), TableColumn(name="key", kind=REAL))
    rows: Rows = [(0, 0.0), (0, -0.0), (None, 0.0), (1, math.inf), (1, math.nan)]
    op = aggregate(0.0, 1.0, None, most=1, tallies=(units_tally(), rows_tally(9)), table=table, key=key)
    found = answered(op, {"t": table}, {"t": contents(rows, (WHOLE, REAL), "who, key")})
    assert found == [(1, 2), (0, 0), (1, 2)]
    twins = aggregate(0.0, -0.0, most=1, table=table, key=key)
    with pytest.raises(ParameterError):
        answered(twins, {"t": table}, {"t": contents(rows, (WHOLE, REAL), "who, key")})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (BOOLEAN, (True, None, False)),
        (TEXT, ("a'b", "", None, "é", "a\0b")),
        (DATE, (date(1, 1, 1), date(9999, 12, 31), None)),
        (REAL, (0.1, 1e300, 5e-324)),
        (integer(*INT128), (INT128[0], INT128[1], 0)),
        (integer(0, 9), (3, 300, 10**30, 5)),
    ],
)
def test_keys_of_every_type(kind: Kind, values: tuple[Any, ...]) -> None:
    table = table_of(TableColumn(name="who", kind=TEXT), TableColumn(name="key", kind=kind))
    within = [value for value in values if value is None or kind != integer(0, 9) or value < 10]
    rows: Rows = [(f"u{index}", value) for index, value in enumerate(within) for _ in range(index + 1)]
    op = aggregate(*values, most=1, tallies=(rows_tally(9),), key=Named("key", kind), table=table)
    found = answered(op, {"t": table}, {"t": contents(rows, (TEXT, kind), "who, key")})
    assert found == [(within.index(value) + 1 if value in within else 0,) for value in values]


def test_several_keys_make_a_cross_product() -> None:
    rows = random_rows(3)
    op = Aggregate(
        input=scan(TABLE, "key", "value"),
        groups=(group(KEY, 2, 0, None), group(VALUE, 1, None, 4, 9)),
        tallies=(rows_tally(1000),),
        most_groups=12,
    )
    found = answered(op, {"t": TABLE}, {"t": contents(rows)})
    cells = itertools.product((2, 0, None), (1, None, 4, 9))
    assert found == [(sum(row[0] is not None and row[1:] == cell for row in rows),) for cell in cells]


def test_counting_rows_with_a_lower_bound() -> None:
    tally = rows_tally(5, VALUE)
    op = aggregate(
        most=1, tallies=(type(tally)(measure=tally.measure, argument=VALUE, bounds=(3, 5)), units_tally(VALUE))
    )
    rows: Rows = [("a", 0, None), ("b", 0, 1), *[("c", 0, 1)] * 4, *[("d", 0, 1)] * 9, ("b", 1, None)]
    assert answered(op, {"t": TABLE}, {"t": contents(rows)}) == [(0 + 3 + 4 + 5, 3)]


def test_nothing_at_all() -> None:
    assert answered(aggregate(most=1), {"t": TABLE}, {"t": contents([("a", 1, 1)]) + " LIMIT 0"}) == [(0, 0, 0, 0)]
    assert answered(aggregate(1, 2, most=1), {"t": TABLE}, {"t": contents([(None, 1, 1)])}) == [(0, 0, 0, 0)] * 2


def test_sums_beyond_64_bits() -> None:
    top = (1 << 63) - 1
    op = aggregate(most=1, tallies=(total(VALUE, -top, top, bounds=(-top, top)),))
    rows: Rows = [(f"u{index}", 0, top) for index in range(50)] + [("u1", 0, top)]
    assert answered(op, {"t": TABLE}, {"t": contents(rows)}) == [(50 * top,)]


def test_filters_projections_and_joins() -> None:
    public = table_of(
        TableColumn(name="id", kind=integer(*INT128)), TableColumn(name="label", kind=TEXT), unit=None, name="p"
    )
    label, key = Named("p.label", TEXT), Named("doubled", integer(-(1 << 64), 1 << 64))
    below = Project(
        input=Filter(input=scan(TABLE, "key", "value"), condition=call("gt", VALUE, literal(0))),
        columns=(("doubled", call("add", KEY, KEY)), ("Doubled", VALUE)),
    )
    right = Project(
        input=scan(public, "id", "label"),
        columns=(("p.id", Named("id", integer(*INT128))), ("p.label", Named("label", TEXT))),
    )
    keys = ((key, Named("p.id", integer(*INT128))),)
    rows: Rows = [("a", 1, 5), ("a", 1, 0), ("b", 2, 1), ("b", None, 1), ("c", 5, 1), (None, 1, 1)]
    others: Rows = [(2, "x"), (2, "y"), (4, None), (None, "z")]
    tables, data = {"t": TABLE, "p": public}, {
        "t": contents(rows), "p": contents(others, (integer(*INT128), TEXT), "id, label"),
    }  # fmt: skip
    for kind, wanted in ((JoinKind.INNER, [1, 1, 1, 0]), (JoinKind.LEFT, [1, 1, 3, 0])):
        joined = JoinPublic(input=below, public=right, kind=kind, keys=keys, most=2)
        op = Aggregate(
            input=joined, groups=(group(label, "x", "y", None, "z"),), tallies=(rows_tally(9),), most_groups=4
        )
        assert [one[0] for one in answered(op, tables, data)] == wanted
        twisted = JoinPublic(input=right, public=below, kind=kind, keys=((keys[0][1], key),), most=2)
        with pytest.raises(ParameterError):
            relations.Lowering(tables, {one: relation("x") for one in tables}).relation(twisted)


def test_a_scan_makes_columns_safe() -> None:
    cases = [
        (REAL, "SELECT unnest(['nan', '-nan', 'inf', '-inf', '1e308'])::DOUBLE AS v", [None] * 4 + [1e308]),
        (REAL, "SELECT unnest(['x', '0.1'])::VARCHAR AS v", [None, 0.1]),
        (DATE, "SELECT unnest(['infinity', '0000-12-31', '0001-01-01'])::DATE AS v", [None, None, date.min]),
        (integer(0, 9), "SELECT unnest([-1, 0, 9, 10])::HUGEINT AS v", [None, 0, 9, None]),
        (WHOLE, "SELECT unnest([9223372036854775808, 5])::HUGEINT AS v", [None, 5]),
        (BOOLEAN, "SELECT unnest(['true', 'perhaps']) AS v", [True, None]),
        (TEXT, "SELECT unnest([1, 2]) AS v", ["1", "2"]),
    ]  # fmt: skip
    for kind, source, wanted in cases:
        text = scan_value(quote_name("v"), kind)
        assert [row[0] for row in SHARED.execute(f"SELECT {text} FROM ({source})").fetchall()] == wanted


def test_names_of_a_table_are_quoted_and_ours_are_ours() -> None:
    odd = 'va"lue" FROM x; --'
    table = table_of(
        TableColumn(name="who", kind=TEXT), TableColumn(name=odd, kind=WHOLE), TableColumn(name="unit", kind=WHOLE)
    )
    op = Aggregate(
        input=scan(table, odd, "unit"),
        groups=(group(Named("unit", WHOLE), 1, 2),),
        tallies=(total(Named(odd, WHOLE), 0, 9, bounds=(0, 9)),),
        most_groups=1,
    )
    quoted = odd.replace('"', '""')
    source = contents([("a", 5, 1), ("b", 6, 2)], names=f'who, "{quoted}", unit')
    assert answered(op, {"t": table}, {"t": source}) == [(5,), (6,)]


def test_undeclared_columns_are_not_read() -> None:
    with pytest.raises(PolicyError):
        relations.Lowering({"t": TABLE}, {"t": relation("x")}).relation(
            Scan(table="t", columns=(ScanColumn("t.other", WHOLE, "other"),), unit="who")
        )


def test_values_and_fanout_of_public_relations() -> None:
    public = table_of(TableColumn(name="id", kind=WHOLE), TableColumn(name="label", kind=TEXT), unit=None, name="p")
    listed, label = scan(public, "id", "label"), Named("label", TEXT)
    SHARED.execute(
        "CREATE OR REPLACE TABLE p AS "
        + contents([(1, "b"), (1, "a"), (2, "a"), (None, None), (None, None), (None, "a")], (WHOLE, TEXT), "id, label")
    )
    clauses = {"p": relation("p")}
    for keys, most in (
        ([Named("id", WHOLE)], "2"),
        ([label], "3"),
        ([Named("id", WHOLE), label], "1"),
        ([call("eq", label, literal("q"))], "4"),
    ):
        assert SHARED.execute(printed(relations.fanout(listed, keys, {"p": public}, clauses)).sql).fetchall() == [
            (most,)
        ]
    for limit, wanted in ((5, ["a", "b"]), (0, ["a"])):
        text = printed(relations.values(listed, label, {"p": public}, clauses, most=limit)).sql
        assert [row[0] for row in SHARED.execute(text).fetchall()] == wanted
    empty = Filter(input=listed, condition=literal(False))
    assert SHARED.execute(printed(relations.fanout(empty, [label], {"p": public}, clauses)).sql).fetchall() == [("0",)]


def test_a_grid_that_is_not_one() -> None:
    op = aggregate(most=1, tallies=(total(VALUE, 0, 100, bounds=(0, 10**6), grid=Fraction(4)),))
    rows: Rows = [("a", 0, 2), ("a", 0, 6), ("a", 0, 7), ("b", 0, 1000)]
    assert answered(op, {"t": TABLE}, {"t": contents(rows)}) == [(0 + 2 + 2 + 25,)]
