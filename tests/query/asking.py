"""A small hospital to ask about: a policy, and a catalogue that needs no engine."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource, Value
from hubbub.privacy.filter import Budget
from hubbub.query.expression import Expression
from hubbub.query.ops import Relation
from hubbub.query.question import Question
from hubbub.query.read.scope import Fanout
from hubbub.query.read.sql import question

STAYS = (
    TableColumn(name="patient_id", kind=of(Type.INTEGER)),
    TableColumn(name="ward", kind=of(Type.TEXT), keys=("a", "b", "c")),
    TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(100))),
    TableColumn(name="age", kind=integer(0, 120, nullable=False), bounds=(Fraction(0), Fraction(110))),
    TableColumn(name="points", kind=of(Type.INTEGER)),
    TableColumn(name="day", kind=of(Type.DATE)),
    TableColumn(name="seen", kind=of(Type.TIMESTAMP)),
    TableColumn(name="urgent", kind=of(Type.BOOLEAN)),
    TableColumn(name="weight", kind=of(Type.REAL)),
)
WARDS = (
    TableColumn(name="id", kind=of(Type.TEXT, nullable=False)),
    TableColumn(name="floor", kind=of(Type.INTEGER, nullable=False)),
    TableColumn(name="ward", kind=of(Type.TEXT)),
    TableColumn(name="beds", kind=of(Type.INTEGER), bounds=(Fraction(0), Fraction(50))),
    TableColumn(name="patient_id", kind=of(Type.TEXT)),
)
CITIES = (TableColumn(name="city", kind=of(Type.TEXT)), TableColumn(name="on_floor", kind=of(Type.INTEGER)))
VISITS = (TableColumn(name="patient_id", kind=of(Type.INTEGER)), TableColumn(name="ward", kind=of(Type.TEXT)))


def table(name: str, columns: Sequence[TableColumn], unit: str | None) -> Table:
    return Table(name=name, source=TableSource(format="parquet", paths=("/x",)), columns=tuple(columns), unit=unit)


TABLES = {
    "stays": table("stays", STAYS, "patient_id"),
    "visits": table("visits", VISITS, "patient_id"),
    "wards": table("wards", WARDS, None),
    "cities": table("cities", CITIES, None),
}


def policy(**changes: Any) -> Policy:
    facts: dict[str, Any] = {
        "account": "study",
        "budget": Budget(epsilon=Fraction(4)),
        "tables": TABLES,
        "limits": Limits(max_groups=3, max_rows=5),
    }
    return Policy(**(facts | changes))


POLICY = policy()


class Catalogue:
    """Public facts, written down."""

    def __init__(
        self,
        policy: Policy = POLICY,
        *,
        fanout: Mapping[str, int] | None = None,
        values: Mapping[tuple[str, str], tuple[Value, ...]] | None = None,
    ) -> None:
        self.policy = policy
        self._fanout = fanout or {}
        self._values: dict[tuple[str, str], tuple[Value, ...]] = {
            ("wards", "floor"): (1, 2),
            ("wards", "id"): ("a", "b"),
            **(values or {}),
        }

    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> Fanout:
        return Fanout(most=self._fanout.get(getattr(relation, "table", ""), 1), held=Stamp())

    def values(self, table: str, column: str) -> tuple[Value, ...]:
        return self._values.get((table, column), ("x", "y"))


def read(text: str, catalogue: Catalogue | None = None) -> Question:
    return question(text, catalogue or Catalogue())
