"""Codes of combinations: one for each, none wraps, and places come back, in Python and in the engine."""

from itertools import product

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import group_codes as codes
from hubbub.engines.nodes.words import name
from hubbub.errors import ParameterError
from hubbub.policy.kinds import Type, integer, of
from hubbub.publish import sparse
from hubbub.query.expression import Column
from hubbub.query.ops import Aggregate, Group, Measure, Scan, Tally
from tests.engines.raw import sql

MOST = (1 << 63) - 1


def counted(many: int, place: int = 0) -> Group:
    return Group(name=f"g{place}", expression=Column(f"g{place}", of(Type.INTEGER)), values=range(many))


def coded(sizes: list[int], rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The numbers of each row's code, by the engine; rows beyond a range are left out."""
    groups = [counted(many, place) for place, many in enumerate(sizes)]
    places, inside = [], []
    for place, group in enumerate(groups):
        found, ends = codes.place_counted(group, name(f"g{place}"))
        places.append(found)
        inside += ends
    made, kept = sql(codes.code(groups, places)), " AND ".join(map(sql, inside))
    numbers = ", ".join(map(sql, codes.numbers(groups, name("code"))))
    columns = ", ".join(f"unnest(?) AS g{place}" for place in range(len(sizes)))
    asked = f"SELECT {numbers} FROM (SELECT {made} AS code FROM (SELECT {columns}) AS q WHERE {kept})"
    given_ = [[row[place] for row in rows] for place in range(len(sizes))]
    with duckdb.connect() as connection:
        return [tuple(row) for row in connection.execute(asked, given_).fetchall()]


def places_of(sizes: list[int], found: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What the engine's numbers say, as the product reads them."""
    groups = tuple(counted(many, place) for place, many in enumerate(sizes))
    scan = Scan(table="t", columns=(), unit="u")
    op = Aggregate(input=scan, groups=groups, tallies=(Tally(measure=Measure.ROWS, argument=None),), most_groups=1)
    text = " ".join(" ".join(map(str, [*row, 1])) for row in found)
    return [tuple(map(int, row)) for row in zip(*dense.combine_cells(op, [[text]]).places, strict=True)]


WIDE = st.lists(st.integers(1, 1 << 62) | st.integers(1, 5), min_size=1, max_size=5)


@given(sizes=WIDE, data=st.data())
def test_codes_are_one_to_one_and_come_back(sizes: list[int], data: st.DataObject) -> None:
    """Also where several numbers are needed, and at both ends of every range."""
    place = st.tuples(*(st.sampled_from([0, many - 1]) | st.integers(0, many - 1) for many in sizes))
    rows = data.draw(st.lists(place, min_size=1, max_size=6, unique=True))
    found = coded(sizes, rows)
    assert len(set(found)) == len(rows)
    assert all(0 <= number <= MOST for row in found for number in row)
    assert sorted(places_of(sizes, found)) == sorted(rows)


def test_rows_beyond_a_range_have_no_place() -> None:
    """They would have another combination's code: 2 · 3 + 0 is 1 · 3 + 3."""
    rows: list[tuple[int, ...]] = [(2, 0), (1, 3), (1, -1), (2, 2), (-1, 5), (1 << 62, 1 << 62)]
    assert coded([3, 3], rows) == [(6,), (8,)]


def test_what_cannot_be_counted_is_refused() -> None:
    text = Group(name="g", expression=Column("g", of(Type.TEXT)), values=range(4))
    off = Group(name="g", expression=Column("g", of(Type.INTEGER)), values=range(1, 4))
    for wrong in (text, off):
        with pytest.raises(ParameterError):
            codes.place_counted(wrong, name("g"))


def test_a_wide_number_is_narrowed_after_it_is_compared() -> None:
    wide = Group(name="g", expression=Column("g", integer(-(1 << 100), 1 << 100)), values=range(1 << 40))
    place, ends = codes.place_counted(wide, name("g"))
    with duckdb.connect() as connection:
        given_ = f"[-1, 0, 1099511627775, 1099511627776, {1 << 90}]::HUGEINT[]"
        asked = f"SELECT {sql(place)} FROM (SELECT unnest({given_}) AS g)"
        found = connection.execute(f"{asked} WHERE {' AND '.join(map(sql, ends))}").fetchall()
    assert found == [(0,), ((1 << 40) - 1,)]


def test_packed_keys_are_those_that_are_unpacked() -> None:
    words = sparse.Words(alphabet="xyz", length=2, shorter=True)
    keys = sparse.Keys.of({"a": range(5), "w": words, "b": ["p", "q"]})
    every = np.array(list(product(range(5), range(13), range(2))))
    packed = keys.pack(list(every.T))
    assert packed.tolist() == list(range(keys.size))
    assert [column.tolist() for column in keys.digits(packed)] == every.T.tolist()
    whole = sparse.Keys.of({"a": ["only"], "b": range(1 << 63)})
    ends = [np.array([0, 0]), np.array([0, MOST])]
    assert whole.pack(ends).tolist() == [0, MOST]
    assert [column.tolist() for column in whole.digits(np.array([0, MOST]))] == [[0, 0], [0, MOST]]


def test_letters_spell_the_texts_that_are_encoded() -> None:
    words = sparse.Words(alphabet="bca", length=3, shorter=True)
    texts = ["".join(one) for many in range(4) for one in product("bca", repeat=many)]
    letters = [np.array(["bca".index(text[at]) if at < len(text) else 3 for text in texts]) for at in range(3)]
    assert words.spelt(letters).tolist() == words.encode(texts).tolist() == list(range(len(words)))
    assert [words.index(text) for text in texts] == list(range(len(words)))
    assert words[4] == texts[4]
    assert [text in words for text in ("bcab", "bd", "", 3)] == [False, False, True, False]
