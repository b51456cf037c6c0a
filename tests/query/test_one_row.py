"""One row a unit: nothing is bounded where it was seen, in the table or in the unit's own column, and nowhere else."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.ledger import Marks
from hubbub.policy.paths import PathStep
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Policy
from hubbub.query.ops import Scan
from hubbub.query.plan.plan import one_row_a_unit
from tests.query.asking import TABLES, policy

STAYS = Scan(table="stays", columns=(), unit="patient_id")


def seen(*columns: str, declared: tuple[str, ...] = ()) -> Policy:
    """Columns of which no two rows share a value, and those of which it is only said."""
    stays = TABLES["stays"]
    told = [replace(one, unique=one.name in (*columns, *declared)) for one in stays.columns]
    keys = frozenset(("stays", column) for column in columns)
    return policy(
        tables={**TABLES, "stays": replace(stays, columns=tuple(told))},
        enforced_keys=keys,
        seen=dict.fromkeys(TABLES, NO_FILES),
    )


def test_the_unit_alone_says_it_and_only_where_it_was_seen() -> None:
    assert one_row_a_unit(STAYS, seen("patient_id"))
    assert not one_row_a_unit(STAYS, seen(declared=("patient_id",)))
    assert not one_row_a_unit(STAYS, seen("cost"))
    by_path = replace(STAYS, path=(PathStep(column="cost", table="stays", key="patient_id"),))
    assert not one_row_a_unit(by_path, seen("patient_id"))
    assert not one_row_a_unit(replace(STAYS, unit=None), seen("patient_id"))


@pytest.mark.parametrize("each", [1, 2])
def test_it_is_looked_at_when_data_is_opened(tmp_path: Path, each: int) -> None:
    file = tmp_path / "points.parquet"
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT i // {each} AS person, i % 4 AS x FROM range(20) AS t(i)) TO '{file}'")
    given: dict[str, Any] = {"unit": "person", "budget": hb.Budget(epsilon=Fraction(1)), "keys": {"x": range(4)}}
    given |= {"max_groups": 3, "max_rows": 4, "ledger": tmp_path / "ledger", "marks": Marks(tmp_path / "marks")}
    asked = "SELECT x, count(*) FROM points GROUP BY x"
    with hb.open(file, **given) as db:
        assert not db.explain(asked, epsilon=1).to_dict()["one_row_a_unit"]
    if each == 1:
        with hb.open(file, **given, columns={"person": {"unique": True}}) as db:
            assert db.explain(asked, epsilon=1).to_dict()["one_row_a_unit"]
    else:
        with pytest.raises(PolicyError, match="declared unique, and some rows share a value"):
            hb.open(file, **given, columns={"person": {"unique": True}})
