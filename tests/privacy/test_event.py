"""Events: what each claims, what it refuses, and the JSON that ledgers keep of it for ever."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from hubbub.errors import AccountingError, EventError, ParameterError
from hubbub.privacy import compose, curves
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    ShuffledEvent,
    WithFailure,
    event_classes,
    event_from_json,
)
from hubbub.privacy.events.record import register
from hubbub.privacy.sensitivity import Neighbors

HALF, MILLIONTH = Fraction(1, 2), Fraction(1, 10**6)
REPLACE, LOCAL = Neighbors.REPLACE_ONE, Neighbors.LOCAL

PURE_JSON = {"event": "pure", "version": 1, "neighbors": "add-remove", "bound": "1/2"}
GOLDEN: list[tuple[Event, dict[str, Any]]] = [
    (
        LaplaceEvent(scale=Fraction(7, 3), sensitivity=Fraction(5, 2)),
        {"event": "laplace", "version": 1, "neighbors": "add-remove", "scale": "7/3", "sensitivity": "5/2"},
    ),
    (
        DiscreteLaplaceEvent(scale=Fraction(4), sensitivity=3, neighbors=REPLACE),
        {"event": "discrete-laplace", "version": 1, "neighbors": "replace-one", "scale": "4/1", "sensitivity": 3},
    ),
    (
        GaussianEvent(sigma=Fraction(3)),
        {"event": "gaussian", "version": 1, "neighbors": "add-remove", "sigma": "3/1", "sensitivity": "1/1"},
    ),
    (
        DiscreteGaussianEvent(sigma=Fraction(3), sensitivity_squared=Fraction(2), dimension=None),
        {
            "event": "discrete-gaussian",
            "version": 1,
            "neighbors": "add-remove",
            "sigma": "3/1",
            "sensitivity_squared": "2/1",
            "dimension": None,
        },
    ),
    (PureEvent(bound=HALF), PURE_JSON),
    (
        RandomizedResponseEvent(bound=HALF, categories=4, neighbors=LOCAL),
        {"event": "randomized-response", "version": 1, "neighbors": "local", "bound": "1/2", "categories": 4},
    ),
    (
        BoundedRangeEvent(range=HALF),
        {"event": "bounded-range", "version": 1, "neighbors": "add-remove", "range": "1/2"},
    ),
    (
        ApproxEvent(bound=HALF, failure=MILLIONTH),
        {"event": "approx", "version": 1, "neighbors": "add-remove", "bound": "1/2", "failure": "1/1000000"},
    ),
    (
        WithFailure(event=PureEvent(bound=HALF), failure=MILLIONTH),
        {"event": "with-failure", "version": 1, "neighbors": "add-remove", "base": PURE_JSON, "failure": "1/1000000"},
    ),
    (
        ComposedEvent(events=(PureEvent(bound=HALF), PureEvent(bound=HALF))),
        {"event": "composed", "version": 1, "neighbors": "add-remove", "events": [PURE_JSON, PURE_JSON]},
    ),
    (
        RepeatedEvent(event=PureEvent(bound=HALF), count=9),
        {"event": "repeated", "version": 1, "neighbors": "add-remove", "base": PURE_JSON, "count": 9},
    ),
    (
        PoissonSampledEvent(event=PureEvent(bound=HALF), rate=Fraction(1, 10)),
        {"event": "poisson-sampled", "version": 1, "neighbors": "add-remove", "base": PURE_JSON, "rate": "1/10"},
    ),
    (
        FixedSizeSampledEvent(event=PureEvent(bound=HALF, neighbors=REPLACE), size=2, population=9),
        {
            "event": "fixed-size-sampled",
            "version": 1,
            "neighbors": "replace-one",
            "base": PURE_JSON | {"neighbors": "replace-one"},
            "size": 2,
            "population": 9,
        },
    ),
    (
        GroupOfTwoEvent(event=PureEvent(bound=HALF)),
        {"event": "group-of-two", "version": 1, "neighbors": "replace-one", "base": PURE_JSON},
    ),
    (
        ShuffledEvent(event=PureEvent(bound=HALF, neighbors=LOCAL), reports=1000, failure=MILLIONTH),
        {
            "event": "shuffled",
            "version": 1,
            "neighbors": "replace-one",
            "base": PURE_JSON | {"neighbors": "local"},
            "reports": 1000,
            "failure": "1/1000000",
        },
    ),
]
EVENTS = [event for event, _ in GOLDEN]
NAMES = [event.tag for event in EVENTS]


def test_the_golden_list_is_complete() -> None:
    assert {(event.tag, event.version) for event in EVENTS} == set(event_classes())


@pytest.mark.parametrize(("event", "golden"), GOLDEN, ids=NAMES)
def test_json_is_frozen(event: Event, golden: dict[str, Any]) -> None:
    assert event.to_json() == golden
    assert event_from_json(json.loads(json.dumps(golden))) == event
    assert hash(event_from_json(golden)) == hash(event)


@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
def test_every_event_is_frozen_and_documents_its_claim(event: Event) -> None:
    with pytest.raises(FrozenInstanceError):
        event.neighbors = LOCAL  # type: ignore[misc]
    text = (type(event).__doc__ or "") + (__import__(type(event).__module__, fromlist=["x"]).__doc__ or "")
    for part in ("Privacy:", "Claim:", "Proof:", "Needs:", "Ref:"):
        assert part in text
    assert {field.name for field in fields(event)} - {"neighbors"} == set(event.schema)


@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
def test_claims_agree_with_each_other(event: Event) -> None:
    orders = np.array([1.0001, 1.5, 2.0, 8.0, 64.0, 4096.0])
    curve = event.rdp(orders)
    assert curve.shape == orders.shape
    assert (curve >= 0).all()
    assert (np.diff(curve) >= -1e-12).all()
    assert 0 <= event.failure <= 1
    assert event.rho is not None
    assert (curve <= orders * float(event.rho) * (1 + 1e-12)).all()
    if event.epsilon is not None:
        assert event.rho <= curves.response_rho_rounded_up(event.epsilon)
        assert (curve <= float(event.epsilon) * (1 + 1e-15)).all()


def test_an_event_is_registered_once() -> None:
    for kind in (LaplaceEvent, GaussianEvent):
        with pytest.raises(EventError, match="defined twice"):
            register(kind)


def test_figures_of_single_laws() -> None:
    assert LaplaceEvent(scale=Fraction(4), sensitivity=Fraction(3)).epsilon == Fraction(3, 4)
    assert DiscreteLaplaceEvent(scale=Fraction(4), sensitivity=3).epsilon == Fraction(3, 4)
    assert GaussianEvent(sigma=Fraction(4), sensitivity=Fraction(3)).rho == Fraction(9, 32)
    assert GaussianEvent(sigma=Fraction(4)).epsilon is None
    assert DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=Fraction(3)).rho == Fraction(3, 32)
    assert DiscreteGaussianEvent(sigma=Fraction(4)).epsilon is None
    assert BoundedRangeEvent(range=Fraction(3)).rho == Fraction(9, 8)
    assert BoundedRangeEvent(range=Fraction(3)).epsilon == 3
    assert float(PureEvent(bound=Fraction(3)).rho) == pytest.approx(3 * math.tanh(1.5), rel=1e-15)
    assert PureEvent(bound=HALF).failure == 0
    approx = ApproxEvent(bound=Fraction(3), failure=MILLIONTH)
    assert (approx.epsilon, approx.failure, approx.rho) == (Fraction(3), MILLIONTH, PureEvent(bound=Fraction(3)).rho)
    np.testing.assert_allclose(GaussianEvent(sigma=Fraction(2)).rdp([2, 16]), [0.25, 2.0], rtol=1e-14)


def test_sequences_add_and_repetitions_multiply() -> None:
    parts = (PureEvent(bound=HALF), LaplaceEvent(scale=Fraction(3)), ApproxEvent(bound=HALF, failure=MILLIONTH))
    whole = ComposedEvent(events=parts)
    assert whole.epsilon == HALF + Fraction(1, 3) + HALF
    assert whole.rho == sum(part.rho for part in parts)
    assert whole.failure == MILLIONTH
    again = RepeatedEvent(event=whole, count=7)
    assert (again.epsilon, again.rho, again.failure) == (7 * whole.epsilon, 7 * whole.rho, 7 * MILLIONTH)
    np.testing.assert_allclose(again.rdp([3.0]), 7 * sum(part.rdp([3.0]) for part in parts))
    mixed = ComposedEvent(events=(PureEvent(bound=HALF), GaussianEvent(sigma=Fraction(1))))
    assert mixed.epsilon is None
    assert mixed.rho == PureEvent(bound=HALF).rho + HALF
    assert RepeatedEvent(event=ApproxEvent(bound=HALF, failure=HALF), count=3).failure == 1
    assert ComposedEvent(events=(ApproxEvent(bound=HALF, failure=HALF),) * 3).failure == 1
    assert WithFailure(event=GaussianEvent(sigma=Fraction(1)), failure=MILLIONTH).rho == HALF


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven(Event):
    """An answer about which nothing has been proven."""

    tag: ClassVar[str] = "unproven"
    schema: ClassVar[Mapping[str, Any]] = {}

    def _check(self) -> None:
        """Nothing to check."""

    @property
    def rho(self) -> Fraction | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyPure(Unproven):
    """An answer of which an ε is proven, and no curve."""

    @property
    def epsilon(self) -> Fraction | None:
        return HALF


def test_no_curve_is_above_epsilon() -> None:
    assert Unproven().rdp([2.0, 1e9]).tolist() == [math.inf, math.inf]
    assert OnlyPure().rdp([2.0, 1e9]).tolist() == [0.5, 0.5]


def test_what_is_not_proven_once_is_not_proven_many_times() -> None:
    for event in (
        RepeatedEvent(event=Unproven(), count=2),
        ComposedEvent(events=(Unproven(), PureEvent(bound=HALF))),
        WithFailure(event=Unproven(), failure=MILLIONTH),
        GroupOfTwoEvent(event=Unproven()),
    ):
        assert event.rho is None
        assert event.epsilon is None
        assert event.rdp([2.0]) == [math.inf]
        with pytest.raises(AccountingError, match="No zcdp bound"):
            compose([event], method="zcdp")


def test_poisson_sampling() -> None:
    sampled = PoissonSampledEvent(event=ApproxEvent(bound=Fraction(1), failure=MILLIONTH), rate=Fraction(1, 10))
    exact = math.log1p(0.1 * math.expm1(1))
    assert sampled.epsilon is not None
    assert exact <= sampled.epsilon <= exact * (1 + 1e-14)
    assert sampled.failure == MILLIONTH / 10
    assert sampled.rho == curves.response_rho_rounded_up(sampled.epsilon)
    quiet = PoissonSampledEvent(event=BoundedRangeEvent(range=Fraction(1)), rate=Fraction(99, 100))
    assert quiet.rho == Fraction(1, 8)
    same = PoissonSampledEvent(event=PureEvent(bound=HALF), rate=Fraction(1))
    assert (same.epsilon, same.rho) == (HALF, PureEvent(bound=HALF).rho)
    gaussian = PoissonSampledEvent(event=GaussianEvent(sigma=Fraction(1)), rate=Fraction(1, 100))
    assert gaussian.epsilon is None
    assert gaussian.rho == HALF
    exact_2 = math.log1p(1e-4 * math.expm1(1))
    assert gaussian.rdp([2.0])[0] == pytest.approx(exact_2, rel=1e-9)
    assert gaussian.rdp([5000.0])[0] <= 2500 * (1 + 1e-12)


def test_fixed_size_sampling() -> None:
    sampled = FixedSizeSampledEvent(event=PureEvent(bound=Fraction(1), neighbors=REPLACE), size=3, population=30)
    assert sampled.epsilon is not None
    assert float(sampled.epsilon) == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-14)
    assert FixedSizeSampledEvent(event=PureEvent(bound=HALF, neighbors=REPLACE), size=9, population=9).epsilon == HALF
    gaussian = GaussianEvent(sigma=Fraction(2), neighbors=REPLACE)
    amplified = FixedSizeSampledEvent(event=gaussian, size=10, population=1000)
    assert amplified.rdp([4.0])[0] < gaussian.rdp([4.0])[0] / 20
    wide = GaussianEvent(sigma=Fraction(6), sensitivity=Fraction(3), neighbors=REPLACE)
    assert FixedSizeSampledEvent(event=wide, size=10, population=1000).rdp([4.0]) == amplified.rdp([4.0])
    orders = np.array([1.5, 3.0, 8.0])
    np.testing.assert_array_equal(sampled.rdp(orders), curves.response_rdp(orders, sampled.epsilon))
    sizes: tuple[Any, ...] = (0, 31, 2.0, True)
    for size in sizes:
        with pytest.raises(ParameterError):
            FixedSizeSampledEvent(event=PureEvent(bound=HALF, neighbors=REPLACE), size=size, population=30)


def test_a_group_of_two_moves_a_shift_law_twice_as_far() -> None:
    wide = Fraction(5)
    shifts: list[Callable[[int], Event]] = [
        lambda shift: LaplaceEvent(scale=wide, sensitivity=Fraction(shift)),
        lambda shift: GaussianEvent(sigma=wide, sensitivity=Fraction(shift)),
        lambda shift: DiscreteLaplaceEvent(scale=wide, sensitivity=shift),
        lambda shift: DiscreteGaussianEvent(sigma=wide, sensitivity_squared=Fraction(shift**2)),
    ]
    for moved in shifts:
        assert moved(3).double_shift() == moved(6)


def test_groups_of_two() -> None:
    pure = GroupOfTwoEvent(event=BoundedRangeEvent(range=Fraction(1)))
    assert (pure.epsilon, pure.rho, pure.neighbors) == (Fraction(2), HALF, REPLACE)
    approx = GroupOfTwoEvent(event=ApproxEvent(bound=Fraction(1), failure=MILLIONTH))
    assert approx.epsilon == 2
    assert (1 + math.e) * 1e-6 * (1 - 1e-14) <= approx.failure <= (1 + math.e) * 1e-6 * (1 + 1e-14)
    assert approx.rho == curves.response_rho_rounded_up(Fraction(2))
    ranged = WithFailure(event=BoundedRangeEvent(range=Fraction(1)), failure=MILLIONTH)
    assert ranged.rho == Fraction(1, 8)
    assert GroupOfTwoEvent(event=ranged).rho == curves.response_rho_rounded_up(Fraction(2)) > HALF
    assert GroupOfTwoEvent(event=ApproxEvent(bound=Fraction(1), failure=HALF)).failure == 1
    assert GroupOfTwoEvent(event=ApproxEvent(bound=Fraction(2000), failure=Fraction(1, 10**900))).failure == 1
    gaussian = GroupOfTwoEvent(event=GaussianEvent(sigma=Fraction(2)))
    assert gaussian.rho == Fraction(1, 2)
    assert gaussian.epsilon is None
    assert GroupOfTwoEvent(event=DiscreteGaussianEvent(sigma=Fraction(2))).rho == Fraction(1, 2)
    laplace = GroupOfTwoEvent(event=DiscreteLaplaceEvent(scale=Fraction(10)))
    assert laplace.rho == DiscreteLaplaceEvent(scale=Fraction(10), sensitivity=2).rho
    np.testing.assert_array_equal(
        laplace.rdp([3.0]), DiscreteLaplaceEvent(scale=Fraction(10), sensitivity=2).rdp([3.0])
    )
    mixed = GroupOfTwoEvent(
        event=ComposedEvent(events=(LaplaceEvent(scale=Fraction(1)), GaussianEvent(sigma=Fraction(1))))
    )
    assert mixed.rho == LaplaceEvent(scale=Fraction(1), sensitivity=Fraction(2)).rho + 2
    with pytest.raises(AccountingError, match="no ε"):
        GroupOfTwoEvent(event=WithFailure(event=GaussianEvent(sigma=Fraction(2)), failure=MILLIONTH))


def test_shuffled_reports() -> None:
    local = PureEvent(bound=Fraction(1), neighbors=LOCAL)
    assert ShuffledEvent(event=local, reports=10**4).epsilon == 1
    amplified = ShuffledEvent(event=local, reports=10**4, failure=MILLIONTH)
    assert amplified.epsilon < Fraction(1, 15)
    assert amplified.rho == curves.response_rho_rounded_up(amplified.epsilon)
    assert amplified.neighbors is REPLACE
    with pytest.raises(ParameterError, match="pure"):
        ShuffledEvent(event=ApproxEvent(bound=HALF, failure=MILLIONTH, neighbors=LOCAL), reports=9)


@pytest.mark.parametrize(
    "make",
    [
        lambda relation: PoissonSampledEvent(event=PureEvent(bound=HALF, neighbors=relation), rate=HALF),
        lambda relation: GroupOfTwoEvent(event=PureEvent(bound=HALF, neighbors=relation)),
    ],
)
def test_add_remove_constructions_refuse_other_relations(make: Any) -> None:
    make(Neighbors.ADD_REMOVE)
    for relation in (REPLACE, LOCAL):
        with pytest.raises(AccountingError, match="add-remove"):
            make(relation)


def test_other_constructions_refuse_other_relations() -> None:
    for relation in (Neighbors.ADD_REMOVE, LOCAL):
        with pytest.raises(AccountingError, match="replace-one"):
            FixedSizeSampledEvent(event=PureEvent(bound=HALF, neighbors=relation), size=1, population=2)
    for relation in (Neighbors.ADD_REMOVE, REPLACE):
        with pytest.raises(AccountingError, match="local"):
            ShuffledEvent(event=PureEvent(bound=HALF, neighbors=relation), reports=2)
    with pytest.raises(AccountingError, match="add-remove, replace-one"):
        ComposedEvent(events=(PureEvent(bound=HALF), PureEvent(bound=HALF, neighbors=REPLACE)))


BAD = [float("nan"), -1, 0, float("inf"), 1e-400, True, "1", None]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_numbers_are_refused_in_one_sentence(bad: Any) -> None:
    makers: list[Callable[[], Any]] = [
        lambda: LaplaceEvent(scale=bad),
        lambda: LaplaceEvent(scale=Fraction(1), sensitivity=bad),
        lambda: DiscreteLaplaceEvent(scale=bad),
        lambda: DiscreteLaplaceEvent(scale=Fraction(1), sensitivity=bad),
        lambda: GaussianEvent(sigma=bad),
        lambda: GaussianEvent(sigma=Fraction(1), sensitivity=bad),
        lambda: DiscreteGaussianEvent(sigma=bad),
        lambda: DiscreteGaussianEvent(sigma=Fraction(1), sensitivity_squared=bad),
        lambda: PureEvent(bound=bad),
        lambda: RandomizedResponseEvent(bound=bad),
        lambda: BoundedRangeEvent(range=bad),
        lambda: ApproxEvent(bound=bad, failure=HALF),
        lambda: ApproxEvent(bound=HALF, failure=bad),
        lambda: WithFailure(event=PureEvent(bound=HALF), failure=bad),
        lambda: RepeatedEvent(event=PureEvent(bound=HALF), count=bad),
        lambda: PoissonSampledEvent(event=PureEvent(bound=HALF), rate=bad),
        lambda: ShuffledEvent(event=PureEvent(bound=HALF, neighbors=LOCAL), reports=bad),
    ]
    for make in makers:
        with pytest.raises(ParameterError, match=r"\[invalid-parameter\] \w+ must be .* Got .* instead\.$"):
            make()


def test_other_bad_parts_are_refused() -> None:
    makers: list[Callable[[], Any]] = [
        lambda: RandomizedResponseEvent(bound=HALF, categories=1),
        lambda: DiscreteGaussianEvent(sigma=HALF, dimension=0),
        lambda: ApproxEvent(bound=HALF, failure=Fraction(1)),
        lambda: PoissonSampledEvent(event=PureEvent(bound=HALF), rate=Fraction(3, 2)),
        lambda: ComposedEvent(events=()),
        lambda: ComposedEvent(events=cast(Any, ("pure",))),
        lambda: RepeatedEvent(event=cast(Any, "pure"), count=2),
        lambda: WithFailure(event=ApproxEvent(bound=HALF, failure=HALF), failure=HALF),
        lambda: PureEvent(bound=HALF, neighbors=cast(Any, "add-remove-ish")),
        lambda: PureEvent(bound=HALF).rdp([1.0]),
        lambda: PureEvent(bound=HALF).rdp([2.0, float("nan")]),
        lambda: PureEvent(bound=HALF).rdp([float("inf")]),
    ]
    for make in makers:
        with pytest.raises(ParameterError):
            make()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        PURE_JSON | {"event": "impure"},
        PURE_JSON | {"event": ["pure"]},
        PURE_JSON | {"version": 2},
        PURE_JSON | {"version": "1"},
        PURE_JSON | {"version": True},
        PURE_JSON | {"neighbors": "replace"},
        PURE_JSON | {"extra": 1},
        {key: value for key, value in PURE_JSON.items() if key != "bound"},
        PURE_JSON | {"bound": 0.5},
        PURE_JSON | {"bound": "0.5"},
        PURE_JSON | {"bound": "2/4"},
        PURE_JSON | {"bound": "1/0"},
        PURE_JSON | {"bound": "-1/2"},
        PURE_JSON | {"bound": "1/2\n"},
        PURE_JSON | {"bound": "١/2"},
        PURE_JSON | {"bound": "1" * 5000 + "/1"},
        {"event": "repeated", "version": 1, "neighbors": "add-remove", "base": PURE_JSON, "count": 2.0},
        {"event": "repeated", "version": 1, "neighbors": "replace-one", "base": PURE_JSON, "count": 2},
        {"event": "composed", "version": 1, "neighbors": "add-remove", "events": {}},
        {"event": "composed", "version": 1, "neighbors": "add-remove", "events": []},
    ],
    ids=str,
)
def test_stored_nonsense_is_refused(stored: Any) -> None:
    with pytest.raises(EventError, match=r"^\[unknown-event\] "):
        event_from_json(stored)


@pytest.mark.parametrize("bad", [2.0, True, "2", None], ids=repr)
def test_a_stored_count_is_a_whole_number(bad: Any) -> None:
    stored = {"event": "repeated", "version": 1, "neighbors": "add-remove", "base": PURE_JSON, "count": bad}
    with pytest.raises(EventError, match="A stored count must be a whole number"):
        event_from_json(stored)


def test_endless_nesting_is_refused() -> None:
    stored: dict[str, Any] = PURE_JSON
    for _ in range(10**4):
        stored = {"event": "repeated", "version": 1, "neighbors": "add-remove", "base": stored, "count": 1}
    with pytest.raises(EventError):
        event_from_json(stored)
