"""The lesson to be learned from a session, read from public facts: columns, classes, bounds, limits and the price.

Everything that can be refused is refused here, before anything is paid: a question is read as SQL is, and the fit is
rehearsed on nobody's rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from hubbub.errors import MissingKeys, NotAllowed, ParameterError, TypeMisfit
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.learn.bayes.bayes import GaussianNB
from hubbub.learn.estimator import Private, plain
from hubbub.learn.kmeans.kmeans import KMeans
from hubbub.learn.linear.regression import LinearRegression, Ridge
from hubbub.learn.pca import PCA
from hubbub.learn.scaler import StandardScaler
from hubbub.learn.statistics.features import Features
from hubbub.ledger.entry import canonical
from hubbub.parameters import Real, between, positive, whole
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.events.event import DiscreteGaussianEvent, Event, PureEvent
from hubbub.privacy.filter import Budget, whole_units_rounded_down
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.check.bounds import interval_of
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.frame.columns import quote
from hubbub.query.frame.frame import Frame
from hubbub.query.functions import call
from hubbub.query.missing.lacking import behind
from hubbub.query.ops import Aggregate, ExactCounts, Measure, Relation, Scan, Tally
from hubbub.query.plan.plan import one_row_a_unit
from hubbub.query.read.rows import RowValues, read_values
from hubbub.query.read.scalars import alike, as_real
from hubbub.query.read.scope import Catalogue
from hubbub.query.requests import Request, Tallies
from hubbub.query.scalar_numbers import Scalars
from hubbub.query.totals import SumsRequest, Totals

ALONE: tuple[type[Private], ...] = (KMeans, PCA, StandardScaler)
WITH_NUMBERS: tuple[type[Private], ...] = (LinearRegression, Ridge)
WITH_LABELS: tuple[type[Private], ...] = (GaussianNB,)
OWN = frozenset({"account", "delta", "epsilon", "max_rows", "meter", "random_state"})
"""Parameters of an estimator that are the session's to say."""
MOST_COLUMNS = 64
MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnWish:
    """The parameters of a request to learn."""

    frame: Frame
    estimator: Any
    columns: Sequence[str]
    target: str | None
    epsilon: Real | None
    delta: Real | None
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The model to learn, its columns and its price: all of it public."""

    estimator: Private
    text_of_rows: str
    relation: Relation
    columns: tuple[Expression, ...]
    names: tuple[str, ...]
    target: str | None
    epsilon: Fraction
    delta: Fraction
    most: int
    single: bool
    rows: Tallies
    """How many rows count: each unit's, at most ``most``."""

    @property
    def event(self) -> Event:
        """One that costs what the whole fit may."""
        if not self.delta:
            return PureEvent(bound=self.epsilon)
        rho = whole_units_rounded_down(rho_rounded_down(self.epsilon, self.delta / 2))
        return DiscreteGaussianEvent(sigma=Fraction(1), sensitivity_squared=2 * rho)

    @property
    def text(self) -> str:
        """The question, without its price."""
        said = {name: plain(value) for name, value in self.estimator.get_params().items() if name not in OWN}
        told = {
            "columns": list(self.names), "estimator": type(self.estimator).__name__, "most_rows": self.most,
            "parameters": said, "rows": self.text_of_rows, "target": self.target,
        }  # fmt: skip
        return "learn " + canonical(told)

    def totals(self, sums: SumsRequest) -> Totals:
        """Ask for sums over these rows."""
        return Totals(
            input=self.relation, columns=self.columns, sums=sums, most=self.most, single=self.single
        )  # fmt: skip

    def fit(self, meter: Meter, account: str, read: Callable[[Request], Sealed[Any]]) -> Private:
        """Fit the estimator; ``read`` has an engine answer a request."""
        data = Features(
            width=len(self.names), most=self.most, single=self.single, names=self.names,
            add_up=lambda sums: read(self.totals(sums)),
            count=lambda: read(self.rows).map(_count),
        )  # fmt: skip
        own = {"account": account, "delta": float(self.delta), "epsilon": float(self.epsilon), "meter": meter}
        pupil: Private = clone(self.estimator).set_params(**own)
        pupil.fit(data, data)
        owned = "has one row" if self.single else f"counts for at most {self.most} row{'s' * (self.most > 1)}"
        pupil.claim_ = replace(pupil.claim_, unit=f"unit, which {owned}")
        return pupil.set_params(meter=None)  # type: ignore[no-any-return]

    def rehearse(self) -> None:
        """Fit to nobody's rows: whatever its parameters make it refuse, it refuses now."""
        ample = Budget(epsilon=self.epsilon + 1024, delta=Fraction(1, 2) if self.delta else Fraction(0))
        self.fit(Meter({"rehearsal": ample}), "rehearsal", _read_nothing)


def _count(counted: ExactCounts) -> Any:
    return np.array([int(counted.tallies[0][0])], dtype=np.int64)


def _read_nothing(request: Request) -> Sealed[Any]:
    """Answer for a table without rows, in the numbers that an engine is told."""
    if not isinstance(request, Totals):
        return Sealed(ExactCounts(cells=((),), tallies=[(0,)]))
    scalars, sums = Scalars(), request.sums
    for one in (*(code.number for code in sums.codes), *([] if sums.values is None else [sums.values])):
        scalars.of(one)
    return Sealed([np.zeros(shape, dtype=np.int64) for shape in sums.shapes])


def read(wish: LearnWish, policy: Policy, catalogue: Catalogue) -> Lesson:
    """A lesson, or a sentence that says why there is none and what to do."""
    estimator, names, target = wish.estimator, tuple(wish.columns), wish.target
    _check_estimator(estimator)
    if policy.budget.neighbors is not Neighbors.ADD_REMOVE:
        raise NotAllowed("Learning is for accounts whose neighbours add or remove a unit. Open one with such a budget.")
    different = {name.lower() if isinstance(name, str) else name for name in (*names, target)}
    if isinstance(wish.columns, str) or not names or len(different) != len(names) + 1:
        raise ParameterError("columns", "a list of different names, the target's not among them", wish.columns)
    if len(names) > MOST_COLUMNS:
        raise ParameterError("columns", f"at most {MOST_COLUMNS} names", len(names))
    if (target is None) is not isinstance(estimator, ALONE):
        wanted = "left out" if isinstance(estimator, ALONE) else "the name of a column"
        raise ParameterError("target", f"{wanted}, for {type(estimator).__name__}", target)
    wished = [*names, *([] if target is None else [target])]
    asked = read_values([quote(one) for one in wished], wish.frame.select_sql, catalogue)
    given = list(asked.values)
    pupil = clone(estimator)
    if isinstance(pupil, WITH_LABELS):
        classes = _classes(pupil, given[-1], asked.relation, policy)
        pupil.set_params(classes=classes)
        given[-1] = _code_label(given[-1], classes)
    single = one_row_a_unit(asked.relation, policy)
    most = 1 if single else _most_rows(wish.rows, pupil.max_rows, policy)
    pupil.set_params(max_rows=most, **_declared_parameters(pupil, given, asked))
    price = whole_units_rounded_down(positive("epsilon", pupil.epsilon if wish.epsilon is None else wish.epsilon))
    slack = pupil.delta or policy.budget.delta / 100 if wish.delta is None else wish.delta
    tally = Tally(measure=Measure.ROWS, argument=None, bounds=(0, most))
    rows = Aggregate(input=asked.relation, groups=(), tallies=(tally,), most_groups=1, single=single)
    return Lesson(
        rows=Tallies(aggregate=rows), estimator=pupil, text_of_rows=asked.text, relation=asked.relation, names=names,
        target=target, most=most, single=single, epsilon=price,
        delta=between("delta", slack, 0, 1, high_open=True),
        columns=tuple(_as_number(one, called) for one, called in zip(given, wished, strict=True)),
    )  # fmt: skip


def _check_estimator(estimator: Any) -> None:
    known = (*ALONE, *WITH_NUMBERS, *WITH_LABELS)
    if type(estimator) not in known:
        names = ", ".join(sorted(one.__name__ for one in known))
        raise NotAllowed(
            f"{type(estimator).__name__} is not learned where the rows are ({names} are). Fit it on an array of them."
        )
    if estimator.meter is not None or estimator.random_state is not None:
        raise ParameterError("estimator", "without a meter and a random_state of its own: the session pays", estimator)


def _most_rows(rows: int | None, own: int, policy: Policy) -> int:
    """As was said, else as the owner declared, else as the estimator has it; never more than the owner allows."""
    declared = policy.limits.max_total_rows or policy.limits.rows
    said = whole("rows", (declared or own) if rows is None else rows, least=1, most=MOST_ROWS)
    if declared is not None and said > declared:
        raise NotAllowed(f"rows is {said}, and the owner allows {declared}. Say less.")
    return said


def _declared_parameters(pupil: Any, given: Sequence[Expression], asked: RowValues) -> dict[str, Any]:
    """The owner's bounds, where the estimator has none of its own and there are some for all columns."""

    def known_bounds(column: str) -> tuple[Fraction, Fraction] | None:
        facts = asked.columns.get(column)
        return None if facts is None else facts.bounds

    def ends_of(one: Expression) -> tuple[Fraction, Fraction] | None:
        return (Fraction(0), Fraction(1)) if one.kind.type is Type.BOOLEAN else interval_of(one, known_bounds)

    found: dict[str, Any] = {}
    columns = given if isinstance(pupil, ALONE) else given[:-1]
    ends = [end for one in columns if (end := ends_of(one)) is not None and end[0] < end[1]]
    if pupil.bounds is None and len(ends) == len(columns):
        found["bounds"] = tuple([float(end[side]) for end in ends] for side in (0, 1))
    beside = ends_of(given[-1]) if isinstance(pupil, WITH_NUMBERS) else None
    if beside is not None and beside[0] < beside[1] and pupil.y_bounds is None:
        found["y_bounds"] = tuple(float(end) for end in beside)
    return found


def _as_number(value: Expression, called: str) -> Expression:
    """A number as a real; a truth is 0 or 1."""
    match value.kind.type:
        case Type.BOOLEAN:
            other = call("case", call("not", value), literal(0.0), literal(None, Type.REAL))
            return call("case", value, literal(1.0), other)
        case Type.INTEGER if value.kind.wide:
            raise TypeMisfit(f"{called} holds whole numbers beyond 64 bits. Divide it, or leave it out.")
        case Type.INTEGER | Type.REAL:
            return as_real(value)
    raise TypeMisfit(f"{called} holds {value.kind.type} values, and this learns from numbers. Leave it out.")


def _classes(pupil: Any, label: Expression, relation: Relation, policy: Policy) -> list[Any]:
    """As the estimator says, or the keys that the owner declared, in the order that the estimator gives them."""
    named = pupil.classes if pupil.classes is not None else _keys_of_label(label, relation, policy)
    if named is None:
        raise MissingKeys("Which classes there are is not declared. Say classes=[…], or let the owner declare keys.")
    found: list[Any] = np.unique(np.asarray([one for one in named if one is not None])).tolist()
    return found


def _keys_of_label(label: Expression, relation: Relation, policy: Policy) -> Sequence[Any] | None:
    """Return the keys of the column that a label is read from; None for anything that is computed."""
    rows, value = behind(relation, label)
    if not isinstance(rows, Scan) or not isinstance(value, Column):
        return None
    reads = next(column.reads for column in rows.columns if column.name == value.name)
    declared = policy.tables[rows.table].column(reads)
    return None if declared is None else declared.keys


def _code_label(label: Expression, classes: Sequence[Any]) -> Expression:
    """The place of a row's class, or −1 where it is none of them."""
    pairs: list[Expression] = []
    for place, one in enumerate(classes):
        pairs += [call("eq", *alike(label, literal(one))), literal(float(place))]
    return call("case", *pairs, literal(-1.0))
