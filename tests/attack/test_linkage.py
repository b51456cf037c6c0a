"""Who is alone, and whose row is found: small tables by hand, and any table against the obvious count."""

from typing import Any

import numpy as np
import pytest

from hubbub.attack.columns import columns_of
from hubbub.attack.linkage import link, linkage, unique_people, uniqueness
from hubbub.errors import ParameterError

RELEASED = [
    {"zip": "13012", "age": 28, "illness": "flu"},
    {"zip": "13012", "age": 29, "illness": "cold"},
    {"zip": "13014", "age": 40, "illness": "gout"},
    {"zip": "13014", "age": 40, "illness": "gout"},
    {"zip": "13015", "age": 50, "illness": "flu"},
    {"zip": "13015", "age": 50, "illness": "gout"},
]
KNOWN = [
    {"name": "Ann", "zip": "13012", "age": 28},
    {"name": "Bob", "zip": "13014", "age": 40},
    {"name": "Cem", "zip": "13015", "age": 50},
    {"name": "Dan", "zip": "99999", "age": 50},
]


def test_by_hand() -> None:
    ann, bob, cem, dan = link(RELEASED, KNOWN, on=["zip", "age"], name="name", sensitive="illness")
    assert (ann.rows, ann.secrets, ann.is_found, ann.is_revealed) == (1, ("flu",), True, True)
    assert (bob.rows, bob.secrets, bob.is_found, bob.is_revealed) == (2, ("gout",), False, True)
    assert (cem.rows, cem.secrets, cem.is_found, cem.is_revealed) == (2, ("flu", "gout"), False, False)
    assert (dan.rows, dan.is_found, dan.is_revealed) == (0, False, False)
    found = linkage(RELEASED, KNOWN, on=["zip", "age"], name="name", sensitive="illness")
    assert found.works
    assert found.numbers == {"people": 4, "linked": 1, "told": 2}


def test_two_people_for_one_row_are_not_found_but_told() -> None:
    twins = [*KNOWN[:1], {"name": "Eve", "zip": "13012", "age": 28}]
    ann, eve = link(RELEASED, twins, on=["zip", "age"], name="name", sensitive="illness")
    assert not ann.is_found
    assert not eve.is_found
    assert ann.is_revealed


def test_a_generalised_release() -> None:
    wide = [
        {"zip": "130**", "age": "<30", "illness": "flu"},
        {"zip": "130**", "age": "<30", "illness": "cold"},
        {"zip": "130**", "age": "[30-60]", "illness": "gout"},
        {"zip": "*", "age": "[30-60]", "illness": "gout"},
    ]
    ann, bob, cem, dan = link(wide, KNOWN, on=["zip", "age"], name="name", sensitive="illness")
    assert (ann.rows, ann.is_revealed) == (2, False)
    assert (bob.rows, bob.is_revealed, bob.is_found) == (2, True, False)
    assert (dan.rows, dan.secrets) == (1, ("gout",))
    assert cem.rows == 2


def test_numbers_as_text_and_missing_values() -> None:
    text = [{name: str(value) for name, value in row.items()} for row in RELEASED]
    assert link(text, KNOWN, on=["zip", "age"], name="name", sensitive="illness")[0].is_found
    (who,) = link(RELEASED, [{"name": "X", "zip": "13012", "age": None}], on=["zip", "age"], name="name",
                  sensitive="illness")  # fmt: skip
    assert (who.rows, who.secrets) == (2, ("cold", "flu"))


def test_groups_of_two_to_five() -> None:
    values = [*"a", *"bb", *"ccccc", *"dddddd"]
    (found,) = uniqueness({"x": values}, quasi=["x"])
    assert (found.people, found.groups, found.unique, found.small) == (14, 4, 1, 7)
    assert found.share == pytest.approx(1 / 14)


@pytest.mark.parametrize("seed", range(3))
def test_against_the_obvious_count(seed: int) -> None:
    chance = np.random.default_rng(seed)
    table = {name: chance.integers(0, 6, 80) for name in "abc"}
    found = {one.on: one for one in uniqueness(table, quasi=["a", "b", "c"])}
    assert len(found) == 7
    for on, one in found.items():
        rows = list(zip(*(table[name].tolist() for name in on), strict=True))
        sizes = [rows.count(row) for row in rows]
        assert one.unique == sizes.count(1)
        assert one.small == sum(2 <= size <= 5 for size in sizes)
        assert one.groups == len(set(rows))


def test_more_columns_single_out_more_people() -> None:
    chance = np.random.default_rng(7)
    table = {"zip": chance.integers(0, 50, 500), "day": chance.integers(0, 300, 500), "sex": chance.integers(0, 2, 500)}
    found = unique_people(table, quasi=["zip", "day", "sex"])
    assert found.rows[0][0] == "zip + day + sex"
    assert found.works
    assert not unique_people({"sex": ["f", "m"] * 5}, quasi=["sex"]).works
    assert len(uniqueness(table, quasi=["zip", "day", "sex"], most=1)) == 3


class Missing:
    """A mark that does not say whether it equals itself."""

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __hash__(self) -> int:
        return 0


class Frame:
    """Anything that has columns."""

    columns = ("a", "b")

    def __getitem__(self, name: str) -> Any:
        return {"a": np.array([1.0, np.nan]), "b": ["x", "y"]}[name]


class Arrow:
    """Anything that knows how to become columns."""

    columns = ()

    def to_pydict(self) -> dict[str, list[object]]:
        return {"a": [1, None], "b": ["x", "y"]}


@pytest.mark.parametrize(
    "table",
    [
        [{"a": 1, "b": "x"}, {"a": None, "b": "y"}],
        {"a": [1, None], "b": ["x", "y"]},
        {"a": [np.int8(1), Missing()], "b": np.array(["x", "y"])},
        Frame(),
        Arrow(),
    ],
    ids=["rows", "columns", "marks", "frame", "arrow"],
)
def test_tables_of_any_make(table: object) -> None:
    assert columns_of(table) == {"a": [1, None], "b": ["x", "y"]}


@pytest.mark.parametrize("table", ["text", 5, [1, 2], [{"a": 1}, {"b": 1}], {"a": [1], "b": []}])
def test_what_is_no_table(table: object) -> None:
    with pytest.raises(ParameterError, match="table"):
        columns_of(table)


def test_too_many_combinations_are_refused() -> None:
    names = [f"c{place}" for place in range(13)]
    table = {name: [1, 2] for name in names}
    with pytest.raises(ParameterError, match="4,096 combinations"):
        uniqueness(table, quasi=names)
    assert uniqueness(table, quasi=names, most=2)
    with pytest.raises(ParameterError, match="at least one column"):
        uniqueness(table, quasi=[])
