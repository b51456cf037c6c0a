"""What is believed of a server's tables: declarations that a constraint enforces, of columns that are what they say."""

import pytest

from hubbub.policy.build import single_table
from hubbub.policy.constraints import columns_kept_unique, with_constraints
from hubbub.policy.paths import through
from hubbub.policy.stamps import NO_FILES, Stamp
from hubbub.policy.tables import Policy, Table, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors

SCHEMA = [("person", "BIGINT"), ("code", "VARCHAR"), ("cost", "DOUBLE")]
ENFORCED = {"person": "BIGINT", "code": "VARCHAR"}


def source(table: str) -> TableSource:
    return TableSource(
        format="postgres", paths=("postgresql://h:5432/d",), schema="s", table=table, dsn="postgresql://u:p@h/d"
    )


def table(name: str = "t", **declared: object) -> Table:
    facts = {"unit": "person", **declared}
    return single_table(name=name, source=source(name), schema=SCHEMA, **facts)  # type: ignore[arg-type]


def policy(*tables: Table, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Policy:
    budget = Budget(epsilon=1, neighbors=neighbors)
    return Policy(account="a", budget=budget, tables={one.name: one for one in tables})


def believed(of: Policy, *, at_rest: Stamp | None = NO_FILES, enforced: dict[str, str] = ENFORCED) -> Policy:
    return with_constraints(of, enforced=lambda _: enforced, at_rest=lambda _: at_rest)


def test_what_is_declared_and_enforced_is_believed() -> None:
    found = believed(policy(table(unique=True, uniques={"code": True})))
    assert found.enforced == {"t"}
    assert found.enforced_keys == {("t", "code")}
    assert found.seen == {"t": NO_FILES}


def test_what_is_not_declared_is_not_looked_for() -> None:
    assert believed(policy(table())) == policy(table())


@pytest.mark.parametrize("enforced", [{}, {"cost": "DOUBLE"}, {"person": "UNKNOWN"}])
def test_what_nothing_enforces_is_not_believed(enforced: dict[str, str]) -> None:
    found = believed(policy(table(unique=True, uniques={"code": True})), enforced=enforced)
    assert not found.enforced
    assert not found.enforced_keys


def test_a_column_that_is_read_as_another_type_is_not_believed() -> None:
    """Texts that are different can be one number: 7 and 07."""
    public = single_table(
        name="p", source=source("p"), schema=SCHEMA, unit=None, types={"code": "integer"}, uniques={"code": True}
    )
    assert columns_kept_unique(public, ENFORCED) == {"person"}
    assert not believed(policy(table(), public)).enforced_keys


def test_a_declared_size_is_not_believed() -> None:
    sized = policy(table(unique=True, size=9), neighbors=Neighbors.REPLACE_ONE)
    assert not believed(sized).enforced


def test_a_path_is_no_unit_of_its_own() -> None:
    """That the column which leads to the unit is unique says nothing of the unit's rows."""
    schema = [("code", "VARCHAR"), ("price", "BIGINT")]
    leads = single_table(name="items", source=source("items"), schema=schema, unit=through("code", to="t"), unique=True)
    found = believed(policy(table(uniques={"code": True}), leads), enforced={"code": "VARCHAR"})
    assert found.enforced == frozenset()
    assert found.enforced_keys == {("t", "code")}


def test_what_is_being_written_to_is_not_believed() -> None:
    assert not believed(policy(table(unique=True)), at_rest=None).enforced


def test_the_place_and_the_name_are_in_the_fingerprint_and_nothing_of_the_role() -> None:
    one = policy(table())
    assert one.fingerprint == policy(table()).fingerprint
    other = TableSource(
        format="postgres", paths=("postgresql://h:5432/d",), schema="s", table="t", dsn="postgresql://h/d"
    )
    assert other == source("t")
    elsewhere = TableSource(
        format="postgres", paths=("postgresql://h:5432/d",), schema="r", table="t", dsn="postgresql://h/d"
    )
    moved = single_table(name="t", source=elsewhere, schema=SCHEMA, unit="person")
    assert policy(moved).fingerprint != one.fingerprint
    assert "postgresql://u:p" not in repr(one)
