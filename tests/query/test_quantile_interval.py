"""Quantiles with an interval of values: what is read, drawn and shown, and that it holds the exact one end to end."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from scipy.stats import binom

import hubbub as hb
from hubbub.errors import NotAllowed
from hubbub.ledger import Marks
from hubbub.mechanisms import PerGroup, QuantileBracket
from hubbub.privacy.filter import LOSS_UNIT, Budget
from hubbub.query.answer.answer import answer
from hubbub.query.answer.explain import explain_columns
from hubbub.query.answer.render import as_text
from hubbub.query.plan.choice import Choice
from tests.query.asking import policy
from tests.query.test_plan import planned

NIGHTS = [Random(7 + person).randint(0, 60) for person in range(900)]
BOTH = "select median_interval(age) as m, quantile_interval(cost, 0.9) as top, median(age) as plain from stays"


def test_each_is_a_choice_of_its_own_with_its_level() -> None:
    found = planned(BOTH, epsilon=3)
    chosen = [one.mechanism for one in found.measurements if isinstance(one.take, Choice)]
    inner = [one.mechanism for one in chosen if isinstance(one, PerGroup)]
    assert [type(one).__name__ for one in inner] == ["QuantileBracket", "QuantileBracket", "Quantile"]
    assert [getattr(one, "q", None) for one in inner] == [Fraction(1, 2), Fraction(9, 10), Fraction(1, 2)]
    assert all(one.needs.sensitivity == 5 for one in inner)
    assert found.cost.loss * LOSS_UNIT <= 3


def test_median_and_one_half_are_the_same_question() -> None:
    one, other = (
        planned(f"select {text} from stays") for text in ("median_interval(age)", "quantile_interval(age, 0.5)")
    )
    assert one.measurements == other.measurements


def test_ends_stand_beside_the_value_and_hold_it() -> None:
    plan = planned(BOTH, epsilon=3)
    found = answer(plan, [[40, 30, 55], [80, 99, 60], [41]], entry=1)
    (row,) = found.to_dicts()
    assert (row["m"], row["m_low"], row["m_high"]) == (40, 30, 55)
    assert isinstance(row["m"], int)
    assert row["top_low"] <= row["top"] <= row["top_high"], "ends that noise has brought to the wrong side hold it too"
    assert "m_ranks" not in row
    assert row["plain_ranks"] > 0
    assert "40 (30 … 55)" in as_text(found)


def test_a_higher_confidence_than_was_bought_has_no_ends() -> None:
    plan = planned("select median_interval(age) as m from stays", epsilon=3)
    found = answer(plan, [[40, 30, 55]], entry=1)
    assert found.with_intervals(0.5).lows == found.lows
    assert found.with_intervals(0.99).lows == ((None,),)
    assert "(unbounded)" in as_text(found.with_intervals(0.99))


def test_explanations_say_what_is_bought() -> None:
    plan = planned("select median_interval(age) from stays", epsilon=3)
    (told,) = explain_columns(plan)
    inner = plan.measurements[0].mechanism
    assert isinstance(inner, PerGroup)
    assert isinstance(inner.mechanism, QuantileBracket)
    assert (
        f"a third of its share for each of _low and _high, which aim {inner.mechanism.aside:,} ranks away"
        in told["sentence"]
    )
    assert "no interval" not in told["sentence"]
    assert told["rank_margin"] > 0


def test_in_zcdp_it_costs_a_third_of_the_square_as_often() -> None:
    found = planned(
        "select ward, median_interval(age) from stays group by ward",
        policy(budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 10**6))),
    )
    for way in (found, planned("select median_interval(age) from stays", epsilon=2)):
        assert way.cost.loss * LOSS_UNIT <= 4


@pytest.mark.parametrize("level", ["0", "1", "'x'", "age"])
def test_other_levels_are_refused(level: str) -> None:
    with pytest.raises(NotAllowed, match="above 0 and below 1"):
        planned(f"select quantile_interval(age, {level}) from stays")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    path = tmp_path / "stays.csv"
    rows = [f"{person},{nights},{'abc'[person % 3]}" for person, nights in enumerate(NIGHTS)]
    path.write_text("person,nights,ward\n" + "\n".join(rows) + "\n")
    with hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(10_000)),
        columns={"person": "integer", "nights": "integer", "ward": "text"},
        bounds={"nights": (0, 100)},
        keys={"ward": ["a", "b", "c"]},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
        marks=Marks(tmp_path / "marks"),
    ) as held:
        yield held


def test_intervals_hold_the_exact_quantiles_of_a_table(db: hb.Database) -> None:
    """Twelve questions of three groups, each drawn anew, at false-alarm rate 1e-6."""
    held = 0
    for fresh in range(12):
        found = db.sql(f"SELECT ward, median_interval(nights + {fresh}) AS m FROM stays GROUP BY ward", epsilon=8)
        for row in found.to_dicts():
            own = sorted(nights + fresh for nights in NIGHTS["abc".index(row["ward"]) :: 3])
            held += row["m_low"] <= own[150] and own[149] <= row["m_high"]
            assert row["m_high"] - row["m_low"] < 40
    assert held >= binom.ppf(1e-6, 36, 0.95)
