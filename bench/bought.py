"""A first question without any bounds or limits, beside the same one with the right ones declared.

The right ones are what an owner who knows the table would declare: its largest value and most rows, to the next round
number, and 0 below. Runs are the project's own steps without the ledger between them: the histograms that the engine
counts, their mechanisms, what is read off them, the plan that follows, its tallies, mechanisms and answer.
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import hubbub as hb
from bench.data import shared
from bench.record import Bench, Row
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.ledger import Ledger, Marks
from hubbub.policy.tables import Policy
from hubbub.query.answer.answer import answer
from hubbub.query.missing.bought import apply_facts
from hubbub.query.missing.lacking import lacking
from hubbub.query.missing.looks import Look, shares
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.read.sql import question

EPSILON = Fraction(1)
TRIALS = 200
TOGETHER = 50
"""Runs that share one reading of the data, and so which of a unit's rows stands for it."""
DRAWS = 20
"""Answers to each run: what is bought is the same, and the answer's own noise is not."""
TARGET = 1.5
PUMS, WEEK = ("pums", "PUMS_pid.csv"), ("restaurant", "week_data.csv")
_PUMS: dict[str, Any] = {
    "name": "people",
    "unit": "pid",
    "columns": {"pid": "integer", "age": "integer", "educ": "integer", "sex": "integer", "income": "real"},
    "keys": {"sex": [0, 1]},
}
_WEEK: dict[str, Any] = {
    "name": "visits",
    "unit": "VisitorId",
    "columns": {
        "VisitorId": "integer",
        "Money spent (euros)": "real",
        "Time spent (minutes)": "real",
        "Day": "integer",
    },
    "keys": {"Day": [1, 2, 3, 4, 5, 6, 7]},
}
EUROS, MINUTES = '"Money spent (euros)"', '"Time spent (minutes)"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and what its owner could have declared: what the data holds, to the next round number."""

    file: tuple[str, str]
    options: dict[str, Any]
    text: str
    right: dict[str, Any]


_INCOME: dict[str, Any] = {"bounds": {"income": (0, 500_000)}, "limits": hb.Limits(max_rows=1, max_groups=1)}
_SPENT: dict[str, Any] = {
    "bounds": {EUROS.strip('"'): (0, 120), MINUTES.strip('"'): (0, 120)},
    "limits": hb.Limits(max_rows=7, max_groups=7),
}
CASES = (
    Case(file=PUMS, options=_PUMS, text="SELECT sum(income) FROM people", right=_INCOME),
    Case(file=PUMS, options=_PUMS, text="SELECT avg(income) FROM people", right=_INCOME),
    Case(file=PUMS, options=_PUMS, text="SELECT avg(age) FROM people", right=_INCOME | {"bounds": {"age": (0, 100)}}),
    Case(file=PUMS, options=_PUMS, text="SELECT sex, count(*) FROM people GROUP BY sex", right=_INCOME),
    Case(file=PUMS, options=_PUMS, text="SELECT sum(educ) FROM people", right=_INCOME | {"bounds": {"educ": (0, 16)}}),
    Case(file=WEEK, options=_WEEK, text="SELECT count(*) FROM visits", right=_SPENT),
    Case(file=WEEK, options=_WEEK, text=f"SELECT sum({EUROS}) FROM visits", right=_SPENT),
    Case(file=WEEK, options=_WEEK, text=f"SELECT avg({EUROS}) FROM visits", right=_SPENT),
    Case(file=WEEK, options=_WEEK, text=f"SELECT avg({MINUTES}) FROM visits", right=_SPENT),
    Case(
        file=WEEK,
        options=_WEEK,
        text='SELECT "Day", count(*) FROM visits GROUP BY "Day"',
        right=_SPENT | {"limits": hb.Limits(max_rows=1, max_groups=7)},
    ),
    Case(
        file=WEEK,
        options=_WEEK,
        text=f'SELECT "Day", sum({EUROS}) FROM visits GROUP BY "Day"',
        right=_SPENT | {"limits": hb.Limits(max_rows=1, max_groups=7)},
    ),
)


def answers(case: Case, declared: dict[str, Any], folder: Path) -> np.ndarray[Any, Any]:
    """The last column, for each run and each draw."""
    folder.mkdir()
    ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
    with hb.open(
        shared(*case.file), budget=hb.Budget(epsilon=Fraction(10**6)), ledger=ledger, **case.options, **declared
    ) as db:
        found = [one for _ in range(TRIALS // TOGETHER) for one in _together(case, db)]
    return np.array(found, dtype=float)


def _together(case: Case, db: hb.Database) -> Iterator[list[list[Any]]]:
    asked, policy = question(case.text, db), db.policy
    wanted = lacking(asked, policy)
    each, rest = shares(wanted, EPSILON)
    exact = {one: one.counts(exact_of(db, one.aggregate)) for one in each}
    measured: dict[str, tuple[Plan, list[Any]]] = {}
    for _ in range(TOGETHER):
        looked = [_bought(one, exact[one], each[one], rest, policy) for one in each]
        known = {fact: value for told in looked for fact, value in told.items()}
        name = repr(list(known.values()))
        if name not in measured:
            planned = plan(*apply_facts(asked, policy, known), epsilon=rest, delta=None)
            held = exact_of(db, planned.aggregate)
            columns = [np.array([] if slot is None else slot.take(held), dtype=np.int64) for slot in planned.slots]
            measured[name] = planned, columns
        planned, columns = measured[name]
        drawn = [
            np.reshape([] if slot is None else slot.mechanism.draw(np.tile(column, DRAWS)), (DRAWS, len(column)))
            for slot, column in zip(planned.slots, columns, strict=True)
        ]
        noisy = [[[int(number) for number in numbers[draw]] for numbers in drawn] for draw in range(DRAWS)]
        yield [[row[-1] for row in answer(planned, one, entry=0).rows] for one in noisy]


def _bought(one: Look, exact: Any, share: Fraction, rest: Fraction, policy: Policy) -> dict[Any, Any]:
    neighbors = policy.budget.neighbors
    noisy = [int(count) for count in np.atleast_1d(one.mechanism(share, neighbors).draw(exact))]
    return one.read(noisy, epsilon=share, rest=rest, neighbors=neighbors)


def truth_of(case: Case) -> np.ndarray[Any, Any]:
    """By the engine itself, without any bounds."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW {case.options['name']} AS SELECT * FROM '{shared(*case.file)}'")
    key = case.text.partition("GROUP BY ")[2]
    order = f" ORDER BY {key}" if key else ""
    return np.array([row[-1] for row in connection.execute(case.text + order).fetchall()], dtype=float)


def rmse_of(found: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> tuple[float, float]:
    """With its standard error, by the runs."""
    squares = np.mean((found - truth) ** 2, axis=(1, 2))
    mean = float(np.mean(squares))
    return math.sqrt(mean), float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) / (2 * math.sqrt(mean))


def run() -> Iterator[Row]:
    """Each question both ways."""
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            truth = truth_of(case)
            first, error = rmse_of(answers(case, {}, Path(folder) / f"{number}"), truth)
            right, other = rmse_of(answers(case, case.right, Path(folder) / f"{number} right"), truth)
            ratio = first / right
            beside = 2 * ratio * math.hypot(error / first, other / right)
            yield Row(
                what=case.text,
                figures={"RMSE, nothing declared": first, "RMSE, declared": right, "ratio": ratio, "2 s.e.": beside},
                target=f"≤ {TARGET}",
                holds=ratio <= TARGET + beside,
            )


BENCH = Bench(
    name="bought",
    about="a first question that has nothing but a unit and ε = 1, beside the same with bounds and limits declared",
    run=run,
    steps=len(CASES),
    notes=(
        "Declared is what the data holds, to the next round number, as an owner who knows the table would. Errors are "
        "against the exact answer, what is clamped and left out included. PUMS has 1,000 people, the restaurant 1,360 "
        "visitors with 2,850 visits. 200 runs each way, of 20 draws of the answer each, without the ledger between "
        "the steps.",
    ),
)
