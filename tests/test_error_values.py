"""Values in errors stand there as their user would write them, and an object's content stands nowhere."""

from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import ParameterError, PolicyError


class Colour(Enum):
    RED = "red"


class Patient:
    def __repr__(self) -> str:
        return "Patient(name='Ada')"


LOOP: list[Any] = []
LOOP.append(LOOP)

WRITTEN = [
    (None, "nothing"),
    (True, "True"),
    (np.True_, "True"),
    (-1, "-1"),
    (np.int64(3), "3"),
    (0.1, "0.1"),
    (np.float64(0.1), "0.1"),
    (Fraction(1, 3), "1/3"),
    (Fraction(4), "4"),
    (10**80 - 1, "9" * 80),
    (10**80, "a number of more digits than are shown"),
    (Fraction(1, 10**5000), "a number of more digits than are shown"),
    ("ward", "'ward'"),
    (np.str_("ward"), "'ward'"),
    (Colour.RED, "'red'"),
    (int, "the type int"),
    (len, "the function len"),
    (date(2026, 1, 31), "2026-01-31"),
    (Path("stays.csv"), "stays.csv"),
    ([Fraction(1, 2), None], "[1/2, nothing]"),
    ((1,), "(1,)"),
    ({"a": {Fraction(1, 2)}}, "{'a': {1/2}}"),
    (LOOP, "[[[[…]]]]"),
    (np.zeros(3), "an array"),
    (np.array(0.5), "0.5"),
    (Decimal("1.5"), "a Decimal"),
    (hb.Budget(1), "a Budget"),
    (hb.Budget(1, delta=1e-9).filter.budget, "ε = 1, δ = 1e-9"),
    (Patient(), "a Patient"),
    ([Patient()], "[a Patient]"),
]


@pytest.mark.parametrize(("value", "written"), WRITTEN, ids=[written for _, written in WRITTEN])
def test_a_value_is_written_as_its_user_would(value: object, written: str) -> None:
    told = str(ParameterError("x", "something else", value))
    assert told == f"[invalid-parameter] x must be something else. Got {written} instead."


def test_rows_of_a_frame_stand_in_no_error() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"id": ["Ada"], "cost": [7]})
    with pytest.raises(ParameterError) as caught:
        hb.open(frame, unit=frame, budget=1)
    assert "Ada" not in str(caught.value)
    assert "Got a DataFrame instead." in str(caught.value)


def test_each_row_a_person_is_explained(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(PolicyError, match="If each row is a person of its own, store a number of the row in a column"):
        hb.open(pandas.DataFrame({"cost": [7]}), unit="row", budget=1, ledger=tmp_path / "a.ledger")


def test_a_budget_is_a_number_or_a_budget(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"id": [1, 2]})
    with hb.open(frame, unit="id", budget=2, ledger=tmp_path / "a.ledger") as db:
        assert db.policy.budget == hb.Budget(epsilon=2) == hb.Budget(2)
    for wrong in (0, -1, True, "2", float("nan")):
        with pytest.raises(ParameterError, match="budget must be a positive number"):
            hb.open(frame, unit="id", budget=wrong, ledger=tmp_path / "b.ledger")  # type: ignore[arg-type]
