"""The gallery's own policy, and the questions under it that audits are pointed at."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from hubbub.audit.subject import Subject
from hubbub.audit.subjects.bought_facts import OfLook
from hubbub.audit.subjects.queries import OfQuery
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors


def _table(name: str, unit: str | None, *columns: TableColumn, unique: bool = False) -> Table:
    source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table=name)
    return Table(name=name, source=source, columns=columns, unit=unit, unique=unique)


_WARD = TableColumn(name="ward", kind=of(Type.TEXT), keys=("a", "b", "c", "d"))
_COST = TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(100)))
_NIGHTS = TableColumn(name="nights", kind=integer(-(1 << 31), (1 << 31) - 1), bounds=(Fraction(0), Fraction(10)))
_POINTS = TableColumn(name="points", kind=of(Type.INTEGER), bounds=(Fraction(0), Fraction(10)), keys=(1, 5, 1_000_000))
_CITY = TableColumn(name="city", kind=of(Type.TEXT))


def _hospital(*, joined: int = 1000, **budget: Any) -> Policy:
    """Stays and visits of people, a table of people with one row each, and a public one."""
    who = TableColumn(name="person", kind=of(Type.INTEGER))
    tables = (
        _table("stays", "person", who, _WARD, _COST, _NIGHTS, _POINTS, _CITY),
        _table("visits", "person", who, _WARD, _NIGHTS),
        _table("people", "person", who, _WARD, _NIGHTS, unique=True),
        _table(
            "places",
            None,
            TableColumn(name="ward", kind=of(Type.TEXT)),
            TableColumn(name="floor", kind=of(Type.INTEGER)),
        ),
    )
    return Policy(
        account="people",
        budget=Budget(**({"epsilon": Fraction(100)} | budget)),
        tables={table.name: table for table in tables},
        limits=Limits(max_groups=2, max_rows=3, max_unit_rows=joined, buy=False),
        enforced=frozenset({"people"}),
        seen={"people": NO_FILES},
    )


HOSPITAL = _hospital()
FEW_JOINED = _hospital(joined=2)
REPLACED = _hospital(neighbors=Neighbors.REPLACE_ONE)
KEYS = _hospital(delta=Fraction(1, 10))


SIZED = replace(REPLACED, tables={**REPLACED.tables, "people": replace(REPLACED.tables["people"], size=5)})


def _asked(text: str, policy: Policy = HOSPITAL, *, delta: Fraction | None = None) -> Callable[[], Subject]:
    return partial(OfQuery, policy, text, epsilon=Fraction(1), delta=delta)


def _bought(text: str, **budget: Any) -> Callable[[], Subject]:
    """What a question buys first, of a hospital that declares nothing but keys."""
    told = _hospital(**budget)
    tables = {
        name: replace(table, columns=tuple(replace(column, bounds=None) for column in table.columns))
        for name, table in told.tables.items()
    }
    return partial(OfLook, replace(told, tables=tables, limits=Limits()), text, epsilon=Fraction(1))


BOUNDS_AND_ROWS = _bought("SELECT avg(points) FROM stays")
ROWS_IN_A_GROUP = _bought("SELECT ward, count(*) FROM stays GROUP BY ward", neighbors=Neighbors.REPLACE_ONE)
TOTALS = _bought("SELECT ward, sum(cost) FROM stays GROUP BY ward")
COUNTS = _asked("SELECT ward, count(*) FROM stays GROUP BY ward")
ROWS = _asked("SELECT count(*) FROM stays")
UNITS = _asked("SELECT count(DISTINCT person) FROM stays")
SUMS = _asked("SELECT ward, sum(cost) FROM stays GROUP BY ward")
NIGHTS = _asked("SELECT sum(nights) FROM stays")
MEANS = _asked("SELECT ward, count(nights), avg(nights) FROM stays GROUP BY ward")
POINTS = _asked("SELECT points, sum(points) FROM stays GROUP BY points")
QUANTILES = _asked("SELECT quantile_cont(nights, 0.99) FROM stays")
MEDIANS = _asked("SELECT ward, median(nights) FROM stays GROUP BY ward")
CITIES = _asked("SELECT city, count(*) FROM stays GROUP BY city", KEYS, delta=Fraction(1, 20))
MATCHED = _asked("SELECT count(*) FROM stays WHERE person IN (SELECT person FROM visits WHERE nights > 1000)")
JOINED = _asked("SELECT sum(v.nights) FROM stays s JOIN visits v ON s.person = v.person AND s.ward = v.ward")
CAPPED = _asked("SELECT sum(v.nights) FROM stays s JOIN visits v ON s.person = v.person", FEW_JOINED)
FULL = _asked("SELECT count(*) FROM stays s FULL JOIN visits v ON s.person = v.person AND s.nights = v.nights + 1")
FIRST_NIGHTS = _asked(
    "SELECT sum(nights) FROM (SELECT person, nights, row_number() OVER (PARTITION BY person ORDER BY ward) AS place "
    "FROM stays) WHERE place = 1"
)
LATER_STAYS = _asked(
    "SELECT count(*) FROM (SELECT person, row_number() OVER (PARTITION BY person ORDER BY ward) AS place FROM stays) "
    "WHERE place > 20"
)
PER_PERSON = _asked("SELECT count(*) FROM (SELECT person, min(nights) AS n FROM stays GROUP BY person) WHERE n > 3")
FLOATS = _asked("SELECT count(*) FROM (SELECT person, sum(cost) AS c FROM stays GROUP BY person) WHERE c > 50")
FLOORS = _asked("SELECT count(*) FROM people JOIN places ON people.ward = places.ward")
UNION = _asked("SELECT count(*) FROM (SELECT person, ward FROM stays UNION ALL SELECT person, ward FROM visits)")
REPLACED_MEAN = _asked("SELECT ward, avg(nights) FROM stays GROUP BY ward", REPLACED)
REPLACED_SUM = _asked("SELECT ward, sum(nights) FROM stays GROUP BY ward", REPLACED)
REPLACED_COUNTS = _asked("SELECT ward, count(*) FROM stays GROUP BY ward", REPLACED)
REPLACED_ABOVE = _asked("SELECT sum(40 + least(greatest(nights, 0), 10)) FROM stays WHERE ward = 'a'", REPLACED)
NUMBERED = _asked("SELECT count(*), sum(nights) FROM people")
SIZED_MEAN = _asked("SELECT avg(40 + least(greatest(coalesce(nights, 0), 0), 10)) FROM people", SIZED)
CONDITIONS = _asked(
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) "
    + ", ".join(f"count(*) FILTER (WHERE nights >= {least})" for least in (0, 1, 5, 9))
    + " FROM stays"
)
