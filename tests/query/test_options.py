"""What a question says about its own privacy, and the price of an error that is asked for."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import NotAllowed, ParameterError, QueryError
from hubbub.policy.tables import Limits
from hubbub.query.plan.plan import plan
from hubbub.query.plan.within import least_epsilon, margins
from hubbub.query.read.sql import question
from hubbub.query.read.text.options import Options, split_options
from tests.query.inside import World, row

COUNTS = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def db(world: World) -> hb.Database:
    rows = [row(n, ward="abc"[n % 3], cost=float(n)) for n in range(60)]
    return world.load(rows, limits=Limits(max_groups=3, max_rows=2))


SAID = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) ward, count(*) AS n FROM stays GROUP BY ward"


@pytest.mark.parametrize(
    ("clause", "meant"),
    [
        ("epsilon = 0.5", Options(epsilon=Fraction(1, 2))),
        ("EPSILON=1e-1 , Delta = .5", Options(epsilon=Fraction(1, 10), delta=Fraction(1, 2))),
        ("epsilon=2, max_groups_contributed=2", Options(epsilon=Fraction(2), max_groups=2)),
        ("max_groups_contributed = NULL, epsilon = 1", Options(epsilon=Fraction(1))),
        ("privacy_unit_column = person", Options(unit="person")),
        ("", Options()),
    ],
)
def test_the_clause_is_read(clause: str, meant: Options) -> None:
    text = SAID.format(clause)
    bare, said = split_options(text)
    assert said == meant
    assert len(bare) == len(text), "carets stay where they are"
    assert bare.split() == COUNTS.split()


def test_the_same_plan_as_without_it(db: hb.Database) -> None:
    mine = db.plan(SAID.format("epsilon = 0.5, privacy_unit_column = Person"))
    assert mine == db.plan(COUNTS, epsilon=0.5)
    assert db.sql(SAID.format("epsilon = 0.5")).entry == db.sql(COUNTS, epsilon=0.5).entry


def test_fewer_groups_mean_less_noise_and_another_answer(db: hb.Database) -> None:
    fewer = db.sql(SAID.format("epsilon = 0.5, max_groups_contributed = 1"))
    whole = db.sql(COUNTS, epsilon=0.5)
    assert fewer.plan.aggregate.most_groups == 1
    assert whole.plan.aggregate.most_groups == 3
    assert fewer.entry != whole.entry
    assert db.sql(SAID.format("epsilon = 0.5, max_groups_contributed = 3")).entry == whole.entry


def test_a_caret_points_into_the_text_as_it_was_written(db: hb.Database) -> None:
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) sum(nothing) FROM stays"
    with pytest.raises(QueryError) as caught:
        db.sql(text)
    line, caret = str(caught.value).splitlines()[-2:]
    assert line[caret.index("^") :].startswith(("sum(nothing)", "nothing"))


@pytest.mark.parametrize(
    "text",
    [
        SAID.format("epsilon = 1, epsilon = 2"), SAID.format("epsilon = 'x'"), SAID.format("min_rows = 3"),
        SAID.format("epsilon"), SAID.format("max_groups_contributed = 0, epsilon = 1"),
        SAID.format("max_groups_contributed = 1.5, epsilon = 1"), SAID.format("epsilon = -1"),
        SAID.format("max_groups_contributed = 4, epsilon = 1"), SAID.format("privacy_unit_column = ward, epsilon = 1"),
        "SELECT count(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) * FROM stays) AS s",
        SAID.format("epsilon = 1") + " HAVING (SELECT WITH DIFFERENTIAL_PRIVACY 1) > 0",
    ],
)  # fmt: skip
def test_what_it_cannot_say_is_refused(db: hb.Database, text: str) -> None:
    with pytest.raises((NotAllowed, ParameterError)):
        db.sql(text, epsilon=None if "epsilon = 1" in text else 1)


def test_said_twice_it_must_be_the_same(db: hb.Database) -> None:
    assert db.plan(SAID.format("epsilon = 0.5"), epsilon=Fraction(1, 2)) == db.plan(COUNTS, epsilon=0.5)
    with pytest.raises(NotAllowed, match=r"0\.5 in the question, and 1 beside it"):
        db.plan(SAID.format("epsilon = 0.5"), epsilon=1)
    with pytest.raises(ParameterError, match="epsilon must be given: what the answer may cost; or within"):
        db.plan(COUNTS)
    with pytest.raises(ParameterError, match="within must be left out beside an epsilon"):
        db.plan(COUNTS, epsilon=1, within=5)


def test_quoted_words_are_no_clause() -> None:
    text = "SELECT 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1)' FROM stays -- WITH DIFFERENTIAL_PRIVACY"
    assert split_options(text) == (text, Options())
    no_text: Any = 3
    assert split_options(no_text) == (no_text, Options())


# The price of an error


@pytest.mark.parametrize("within", [1, 4, 50, 1000, Fraction(1, 2)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_least_price_for_an_error(db: hb.Database, within: Any, confidence: float) -> None:
    planned = db.plan(COUNTS, within=within, confidence=confidence)
    assert max(margins(planned, 1 - confidence)) <= within
    cheaper = plan(planned.question, planned.policy, epsilon=planned.epsilon * 31 / 32)
    assert max(margins(cheaper, 1 - confidence)) > within or planned.epsilon < Fraction(1, 10**6)


def test_sums_too_and_all_columns_together(db: hb.Database) -> None:
    planned = db.plan("SELECT count(*), sum(cost) FROM stays", within=20)
    assert max(margins(planned, 0.05)) <= 20
    found = db.sql("SELECT sum(cost) AS s FROM stays", within=20)
    assert found.highs[0][0] - found.rows[0][0] <= 20


@pytest.mark.parametrize("text", ["SELECT avg(cost) FROM stays", "SELECT count(*), median(cost) FROM stays"])
def test_where_the_law_is_not_public_it_is_refused(db: hb.Database, text: str) -> None:
    with pytest.raises(NotAllowed, match="counts and sums alone"):
        db.plan(text, within=5)


def test_what_the_budget_cannot_buy_is_refused(db: hb.Database) -> None:
    small = replace(db.policy, budget=hb.Budget(epsilon=Fraction(1, 10)))
    with pytest.raises(NotAllowed, match="whole budget"):
        least_epsilon(question(COUNTS, db), small, within=1)
    wrongs: list[dict[str, Any]] = [{"within": 0}, {"within": 5, "confidence": 1}, {"within": 5, "confidence": 0}]
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            db.plan(COUNTS, **wrong)
