"""Tables that are made anonymous: they are what was wanted, nobody's row is lied about, and the loss is as said."""

from typing import Any

import numpy as np
import pytest

from hubbub.anonymity import Digits, Hierarchy, Ranges, Tree, Wanted, make, measure
from hubbub.anonymity.hierarchies import Suppress
from hubbub.anonymity.measure import loss_of
from hubbub.anonymity.mondrian import describe_values, partitions
from hubbub.attack.composition import composition
from hubbub.attack.generalised import region
from hubbub.errors import HubbubError, ParameterError

QUASI = ["zip", "age", "sex"]
LEVELS: dict[str, Hierarchy] = {"zip": Digits(5), "age": Ranges((5, 10, 20, 40, 80))}


def people(count: int = 300, seed: int = 0) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    return {
        "zip": [f"130{place:02d}" for place in chance.integers(0, 30, count)],
        "age": chance.integers(18, 90, count),
        "sex": chance.choice(["f", "m"], count),
        "name": [f"person {place}" for place in range(count)],
        "illness": chance.choice(["flu", "cold", "gout", "aids"], count, p=[0.4, 0.3, 0.2, 0.1]),
    }


WANTED = [
    Wanted(k=1),
    Wanted(k=7),
    Wanted(k=4, l=3),
    Wanted(k=4, entropy=2.5),
    Wanted(k=4, recursive=(2, 2)),
    Wanted(k=4, t=0.2),
]


@pytest.mark.parametrize("wanted", WANTED, ids=str)
@pytest.mark.parametrize("levels", [False, True], ids=["cuts", "levels"])
def test_what_is_made_is_what_was_wanted(wanted: Wanted, levels: bool) -> None:
    table = people()
    made = make(
        table,
        quasi=QUASI,
        sensitive="illness",
        wanted=wanted,
        hierarchies=LEVELS if levels else None,
        suppress=0.05 if levels else 0.0,
    )
    again = measure(made.rows, quasi=QUASI, sensitive="illness")
    assert again.satisfies(wanted)
    assert again == made.after
    assert len(made.rows) == 300 - made.loss.left_out >= 285
    assert made.dropped == ("name",)
    assert list(made.rows[0]) == [*QUASI, "illness"]


@pytest.mark.parametrize("levels", [False, True], ids=["cuts", "levels"])
def test_everybody_stands_behind_their_own_row(levels: bool) -> None:
    table = people()
    made = make(table, quasi=QUASI, wanted=Wanted(k=5), hierarchies=LEVELS if levels else None, keep=["name"])
    place = {name: at for at, name in enumerate(table["name"])}
    assert len(made.rows) == 300
    for row in made.rows:
        own = place[row["name"]]
        assert all(region(row[column]).contains(table[column][own]) for column in QUASI), row


def test_cuts_by_hand() -> None:
    keys = [(1,), (2,), (3,), (4,), (5,)]
    groups = partitions(keys, [None] * 5, wanted=Wanted(k=2), scale=None)
    assert [group.tolist() for group in groups] == [[0, 1, 2], [3, 4]]
    assert [len(group) for group in partitions(keys, [None] * 5, wanted=Wanted(k=3), scale=None)] == [5]
    same = partitions([(1,)] * 6, [None] * 6, wanted=Wanted(k=2), scale=None)
    assert [len(group) for group in same] == [6]  # strict: equal values stay together
    skewed = partitions([(1,)] * 2 + [(2,)] * 5, [None] * 7, wanted=Wanted(k=2), scale=None)
    assert [len(group) for group in skewed] == [2, 5]  # the median's rows may all go to the other side


def test_cuts_are_at_the_lower_median() -> None:
    groups = partitions([(place,) for place in range(6)], [None] * 6, wanted=Wanted(k=2), scale=None)
    assert [len(group) for group in groups] == [3, 3]


def test_the_widest_column_is_cut_first() -> None:
    keys = [(place, place % 2) for place in range(8)]
    groups = partitions(keys, [None] * 8, wanted=Wanted(k=2), scale=None)
    assert [group.tolist() for group in groups] == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_how_groups_are_written() -> None:
    assert describe_values([3, 3.0]) == "3"
    assert describe_values([3, 1.5]) == "[1.5-3]"
    assert describe_values(["b", "a", "b"]) == "{a, b}"
    assert describe_values([True, False]) == "{False, True}"
    assert describe_values([1, None]) == "*"


def test_hierarchies() -> None:
    zips = Digits(5)
    assert [zips.at("13012", level) for level in range(6)] == ["13012", "1301*", "130**", "13***", "1****", "*"]
    assert zips.at("130", 1) == "*"
    ages = Ranges((5, 10))
    assert [ages.at(28, level) for level in range(4)] == ["28", "[25-30)", "[20-30)", "*"]
    assert ages.at(30, 1) == "[30-35)"
    assert ages.at(None, 1) == "*"
    tree = Tree({"flu": "lungs", "asthma": "lungs", "lungs": "illness", "gout": "illness"})
    assert tree.top == 3
    assert [tree.at("flu", level) for level in range(4)] == ["flu", "lungs", "illness", "*"]
    assert [tree.at("gout", level) for level in range(4)] == ["gout", "illness", "illness", "*"]
    assert [Suppress().at("x", level) for level in range(2)] == ["x", "*"]
    with pytest.raises(ParameterError, match="multiple"):
        Ranges((5, 12))
    with pytest.raises(ParameterError, match="multiple"):
        Ranges(())
    with pytest.raises(ParameterError, match="ancestor"):
        Tree({"a": "b", "b": "a"})


@pytest.mark.parametrize("hierarchy", [Digits(5), Ranges((5, 10, 20)), Tree({"13001": "x", "13002": "x", "x": "y"})])
def test_who_is_alike_at_one_level_is_alike_above(hierarchy: Any) -> None:
    values = [13001, 13002, 13011, 13012, 13999] if isinstance(hierarchy, Ranges) else ["13001", "13002", "13012"]
    for level in range(hierarchy.top):
        below = [hierarchy.at(value, level) for value in values]
        above = [hierarchy.at(value, level + 1) for value in values]
        for i, one in enumerate(below):
            for j, other in enumerate(below):
                assert one != other or above[i] == above[j]


def test_the_finest_levels_that_will_do() -> None:
    table = {"zip": ["13011", "13012", "13021", "13022"]}
    made = make(table, quasi=["zip"], wanted=Wanted(k=2), hierarchies={"zip": Digits(5)})
    assert made.levels == {"zip": 1}
    assert make(table, quasi=["zip"], wanted=Wanted(k=3), hierarchies={"zip": Digits(5)}).levels == {"zip": 2}


def test_rows_are_left_out_up_to_the_share_that_is_allowed() -> None:
    table = {"zip": ["13011"] * 9 + ["99999"]}
    kept = make(table, quasi=["zip"], wanted=Wanted(k=2), hierarchies={"zip": Digits(5)}, suppress=0.1)
    assert (kept.levels, kept.loss.left_out, len(kept.rows)) == ({"zip": 0}, 1, 9)
    none = make(table, quasi=["zip"], wanted=Wanted(k=2), hierarchies={"zip": Digits(5)}, suppress=0.09)
    assert (none.levels, none.loss.left_out, len(none.rows)) == ({"zip": 5}, 0, 10)


def test_a_coarser_table_with_all_rows_may_lose_less() -> None:
    table = {"age": [10, 11, *[500] * 4, *[1000] * 4]}
    made = make(table, quasi=["age"], wanted=Wanted(k=2), hierarchies={"age": Ranges((5,))}, suppress=0.5)
    assert (made.levels, made.loss.left_out) == ({"age": 1}, 0)


def test_leaving_rows_out_changes_what_all_rows_are_like() -> None:
    """The small group is within 0.06 of all rows, but not of those that would stay."""
    groups = [("11", "a", 50), ("11", "b", 50), ("22", "a", 4), ("22", "b", 6)]
    rows = [{"zip": place, "s": value} for place, value, count in groups for _ in range(count)]
    rows += [{"zip": f"3{place}", "s": "b"} for place in range(10)]
    wanted = Wanted(k=2, t=0.06)
    made = make(rows, quasi=["zip"], sensitive="s", wanted=wanted, hierarchies={"zip": Digits(2)}, suppress=0.1)
    assert (made.levels, made.loss.left_out) == ({"zip": 2}, 0)
    assert made.after.satisfies(wanted)


def test_loss_by_hand() -> None:
    before = [(0, "a"), (10, "a"), (20, "b"), (20, "c")]
    after = [("[0-10]", "a"), ("[0-10]", "a"), ("20", "{b, c}"), ("20", "{b, c}")]
    found = loss_of(before, after, k=2)
    assert found.penalty == pytest.approx((0.25 + 0.25) / 2)
    assert found.discernibility == 8
    assert found.average_size == 1
    assert found.left_out == 0
    some = loss_of(before, [("0", "a"), None, ("20", "b"), ("20", "c")], k=1)
    assert some.penalty == pytest.approx(0.25)
    assert some.discernibility == 3 + 4
    assert some.left_out == 1
    assert loss_of([], [], k=1).penalty == 0
    assert loss_of([(1,), (1,)], [("*",), ("1",)], k=1).penalty == 0.5


def test_more_anonymity_costs_more() -> None:
    table = people()
    losses = [make(table, quasi=QUASI, wanted=Wanted(k=k)).loss.penalty for k in (1, 5, 25, 125)]
    assert losses == sorted(losses)
    assert losses[0] == 0
    assert losses[0] < losses[1] < losses[3]


def test_two_tables_that_are_each_anonymous_are_not_together() -> None:
    table = people(400, seed=3)
    narrow = ["zip", "age"]
    first = make(table, quasi=narrow, sensitive="illness", wanted=Wanted(k=3, l=2))
    half = {name: list(values)[:380] for name, values in table.items()}
    second = make(half, quasi=narrow, sensitive="illness", wanted=Wanted(k=4, l=2))
    pinned = [
        composition(
            first.rows,
            second.rows,
            on=narrow,
            sensitive="illness",
            person={"zip": table["zip"][one], "age": int(table["age"][one])},
        )
        for one in range(60)
    ]
    assert any(found.works for found in pinned)
    truths = {f"has {one};" for one in ("flu", "cold", "gout", "aids")}
    assert all(any(word in found.verdict for word in truths) for found in pinned if found.works)


def test_what_cannot_be_made() -> None:
    table = people(20)
    with pytest.raises(HubbubError, match="Not even all rows"):
        make(table, quasi=QUASI, wanted=Wanted(k=21))
    assert make(table, quasi=QUASI, wanted=Wanted(k=20)).after.k == 20
    with pytest.raises(HubbubError, match="Not even all rows"):
        make(table, quasi=QUASI, sensitive="illness", wanted=Wanted(l=5))
    with pytest.raises(ParameterError, match="sensitive"):
        make(table, quasi=QUASI, wanted=Wanted(l=2))
    with pytest.raises(ParameterError, match="suppress"):
        make(table, quasi=QUASI, wanted=Wanted(k=2), suppress=0.1)
    with pytest.raises(ParameterError, match="hierarchies"):
        make(table, quasi=["zip"], wanted=Wanted(k=2), hierarchies={"age": Ranges((5,))})
