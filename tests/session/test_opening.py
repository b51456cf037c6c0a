"""What ``hb.open`` takes: few parameters in groups, and for one version more the old spellings, with a warning."""

import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.policy.in_python import merge_declarations

COMMON: dict[str, Any] = {"unit": "person", "budget": hb.Budget(epsilon=Fraction(1))}
TYPES = {"person": "integer", "ward": "text", "cost": "real"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "stays.csv"
    made.write_text("person,ward,cost\n1,north,20\n2,south,35.5\n")
    return made


def policy(file: Path, **options: Any) -> Any:
    with hb.open(file, ledger=file.parent / "ledger", **COMMON, **options) as db:
        return db.policy


def test_old_spellings_mean_the_same_and_say_how_to_write_them(file: Path) -> None:
    new = policy(
        file,
        columns={
            "person": {"type": "integer", "unique": True},
            "ward": {"type": "text", "keys": ["north"], "nullable": False},
            "cost": {"type": "real", "bounds": (0, 50), "grid": 1},
        },
        limits=hb.Limits(max_groups=2, max_rows=3, max_total_rows=4),
    )
    with pytest.warns(DeprecationWarning, match=r"hubbub\.open\(") as told:
        old = policy(
            file,
            types=TYPES,
            unique=["person"],
            nullable={"ward": False},
            grids={"cost": 1},
            keys={"ward": ["north"]},
            bounds={"cost": (0, 50)},
            max_groups=2,
            max_rows=3,
            max_total_rows=4,
        )
    assert old.fingerprint == new.fingerprint
    assert old.limits == new.limits
    words = [str(warning.message) for warning in told]
    assert len(words) == 7
    assert any("write limits=hubbub.Limits(max_rows=…)" in word for word in words)
    assert any('write columns={"NAME": {"grid": …}}' in word for word in words)
    assert all(warning.filename == __file__ for warning in told)


def test_old_limits_are_put_into_the_new_ones(file: Path) -> None:
    with pytest.warns(DeprecationWarning, match="max_rows"):
        found = policy(file, columns=TYPES, limits=hb.Limits(max_groups=2), max_rows=3)
    assert (found.limits.max_groups, found.limits.max_rows) == (2, 3)


def test_private_tables_take_columns_too() -> None:
    new = hb.private("a.csv", unit="person", columns={"id": {"unique": True, "type": "integer"}})
    with pytest.warns(DeprecationWarning, match=r"hubbub\.private\("):
        old = hb.private("a.csv", unit="person", unique=["id"], types={"id": "integer"})
    assert {name: held for name, held in new.declared.items() if held} == {
        name: held for name, held in old.declared.items() if held
    }


@pytest.mark.parametrize("function", [hb.open, hb.private])
def test_what_never_was_a_parameter_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'maximum'"):
        function("nowhere.csv", unit="person", maximum=3)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"cost": {"bound": (0, 1)}}, "declared by type, nullable"),
        ({"cost": (0, 1)}, "a type or a mapping"),
        ({"cost": {"bounds": (0, 2)}}, "declared once of column cost"),
    ],
)
def test_columns_that_say_nothing_or_twice_are_refused(columns: Any, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        merge_declarations(columns, bounds={"cost": (0, 1)}, keys=None, old={})


def test_parameters_are_few() -> None:
    named = [one for one in inspect.signature(hb.open).parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert len(named) <= 15


def test_the_same_files_under_another_account_name_warn(file: Path) -> None:
    """A new name would be a new budget for the same people."""
    columns = {name: {"type": kind} for name, kind in TYPES.items()}
    policy(file, columns=columns, account="one")
    policy(file, columns=columns, account="one")
    with pytest.warns(UserWarning, match="'two' is opened for data that account 'one' was opened for"):
        policy(file, columns=columns, account="two")
    policy(file, columns=columns, account="two")
