"""Subjects that are neither a query nor a mechanism: none is accused, and faults planted in the product all are.

Every statistical test of these subjects has a false-alarm rate below 1e-6.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import pytest

from hubbub.audit.chance import Chance
from hubbub.audit.examine import Settings, examine
from hubbub.audit.subjects import laws
from hubbub.audit.subjects.filters import forget
from hubbub.audit.subjects.gate import coins
from hubbub.audit.subjects.gate.coins import CoinEvent
from hubbub.audit.subjects.gate.walks import Gate
from hubbub.audit.subjects.laws import TwoLaws
from hubbub.audit.subjects.names import BUILDERS
from hubbub.audit.subjects.registry import SUBJECTS, _build, subject_of
from hubbub.errors import ParameterError
from tests.planted.plant import named
from tests.planted.test_gallery import HONEST
from tests.testing.planting import FILTERS, PLANTED, Fault

OURS = [name for name in SUBJECTS if name.startswith(("filter:", "noise:")) or name in ("gate", "calibration")]


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Prices that were computed with a fault in place are forgotten with it."""
    yield
    forget()


@pytest.mark.parametrize("name", [name for name in OURS if named(name) not in HONEST])
def test_none_of_ours_is_accused(name: str) -> None:
    """The others are audited, with the same settings and seed, beside the bugs of the gallery."""
    report = examine(subject_of(name))
    assert not report.accused, str(report)
    assert report.findings


@pytest.mark.parametrize("name", OURS)
def test_an_audit_has_several_pairs_to_look_at(name: str) -> None:
    assert len(list(islice(subject_of(name).pairs(Chance(f"0/{name}")), Settings().pairs))) >= 4


def test_names() -> None:
    assert subject_of("geometric").name == "geometric"
    assert subject_of(" Gate").name == "gate"
    assert {name: made().name for name, made in SUBJECTS.items()} == {name: name for name in SUBJECTS}
    assert {builder: tuple(_build(builder)) for builder in BUILDERS} == BUILDERS
    with pytest.raises(ParameterError, match="filter: family"):
        subject_of("filter: zcpd")
    with pytest.raises(ParameterError, match="names, such as geometric"):
        subject_of("§")


@pytest.mark.parametrize(("name", "subject", "fault"), PLANTED, ids=[f"{one[1]}-{one[0]}" for one in PLANTED])
def test_a_planted_fault_is_accused(name: str, subject: str, fault: Fault) -> None:
    found = subject_of(subject)
    with fault():
        report = examine(found)
    assert report.accused, f"{name}: {report}"
    assert report.counterexample is not None
    assert report.counterexample.sentences
    assert report.counterexample.shown


def test_every_subject_has_two_planted_faults() -> None:
    planted = [subject for _, subject, _ in PLANTED]
    assert {name: planted.count(name) >= 2 for name in OURS} == dict.fromkeys(OURS, True)


def test_the_gate_is_walked_by_default() -> None:
    assert len(list(Gate().pairs(Chance(0)))) <= Settings().pairs


def test_a_counterexample_is_short_and_says_what_was_asked() -> None:
    subject, fault = FILTERS["some order"]
    with fault():
        found = examine(subject_of(subject)).counterexample
    assert found is not None
    assert "promised" in found.sentences[0]
    assert found.shown.count(" × ") == 1
    assert "a coin with heads at" in found.shown


# The exact laws that filters and calibrations are held against


def test_composed_responses_are_a_binomial() -> None:
    each, times, epsilon = Fraction(1, 3), 9, 1.5
    truth = 1 / (1 + math.exp(-each))
    ways = [
        (math.comb(times, k) * truth**k * (1 - truth) ** (times - k), (2 * k - times) / 3) for k in range(times + 1)
    ]
    exact = sum(mass * -math.expm1(epsilon - loss) for mass, loss in ways if loss > epsilon)
    assert laws.repeat_step(laws.response(each), times).laws.delta(epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 7.5])
def test_putting_outcomes_together_tells_less(sigma: float) -> None:
    whole = laws.gaussian_laws(sigma, 1)
    for cells in (4, 8, 64):
        few = whole.merge(cells)
        assert len(few.p) <= cells
        assert math.fsum(few.p) == pytest.approx(1)
        assert all(few.delta(epsilon) <= whole.delta(epsilon) + 1e-15 for epsilon in (0.1, 0.5, 1, 3))
        assert few.rho() <= whole.rho() * (1 + 1e-12)
    assert whole.rho() == pytest.approx(1 / (2 * sigma * sigma), rel=0.2)


def test_what_shows_an_input_is_never_put_together_with_what_does_not() -> None:
    shown = TwoLaws.of([0.25, 0.0, *[0.75 / 64] * 64], [0.0, 0.25, *[0.75 / 64] * 64])
    assert shown.merge(16).delta(5.0) == pytest.approx(0.25)


@pytest.mark.parametrize(("here", "there"), [(0.5, 0.1), (0.9, 0.0004), (0.05, 5e-6), (0.3, 0.31)])
def test_a_coin_costs_what_it_loses(here: float, there: float) -> None:
    step = coins.coin(Fraction(here), Fraction(there))
    assert isinstance(step.event, CoinEvent)
    assert step.laws.rho() <= float(step.event.rho) <= 1.2 * step.laws.rho()
    assert max(abs(step.laws.losses)) <= float(step.event.epsilon)
    for order in (1.5, 2.0, 8.0):
        moment = math.fsum(step.laws.p**order * step.laws.q ** (1 - order))
        assert step.event.rdp([order])[0] >= math.log(moment) / (order - 1) - 1e-12
