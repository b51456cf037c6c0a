"""The entry point of audits, on subjects whose faults are known: what is found, when, how small, and how it is told."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.audit.blackbox import draws_that_count
from hubbub.audit.chance import Chance
from hubbub.audit.exact import zcdp_delta
from hubbub.audit.examine import Settings, examine
from hubbub.audit.report import Report
from hubbub.audit.specimens import OfSpecimen
from hubbub.audit.subject import Claim, Pair
from hubbub.errors import AccountingError
from hubbub.mechanisms import Gaussian, Geometric, RandomizedResponse
from hubbub.mechanisms.specimens.registry import find_specimen
from hubbub.privacy.events.event import Event, GaussianEvent
from hubbub.privacy.sensitivity import Neighbors

QUICK = Settings(pairs=4, pilots=2, pilot=200, steps=1, samples=5_000)


@dataclass
class Counting:
    """A count of rows with geometric noise at ``true`` ε, which claims ``stated``; some pairs have a fault."""

    stated: float = 1.0
    true: float = 1.0
    fault_from: int | None = None
    """So many rows or more, and a replay would differ."""
    only_at: int | None = None
    """The noise is missing where there are so many rows, and nowhere else."""
    name: str = "rows, counted"
    asked: list[int] = field(default_factory=list)

    @property
    def claim(self) -> Claim:
        return Claim.pure(self.stated)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        yield _rows(3)
        yield from (_rows(chance.between(4, 40)) for _ in itertools.count())

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return _rows(len(pair.x) + chance.choice((-1, 1)))

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return (_rows(many) for many in range(len(pair.x)))

    def faults(self, pair: Pair) -> list[str]:
        self.asked.append(len(pair.x))
        wrong = self.fault_from is not None and len(pair.x) >= self.fault_from
        return ["the plans differ"] if wrong else []

    def answers(self, value: Sequence[int], *, times: int) -> Any:
        if self.only_at == len(value):
            return np.full(times, len(value))
        return Geometric(epsilon=Fraction(self.true)).repeat(len(value), times=times)

    def show_pair(self, pair: Pair) -> str:
        return f"x = {pair.x}\ny = {pair.y}"


def _rows(many: int) -> Pair:
    return Pair(x=[0] * many, y=[0] * (many + 1), about=f"{many} rows and one more")


def test_an_honest_subject_is_not_accused_and_the_report_says_how_far_it_could_see() -> None:
    report = examine(Counting(), settings=QUICK)
    assert not report.accused
    assert report.counterexample is None
    assert report.tried.pairs == QUICK.pairs
    assert all(one.epsilon < 1.0 for one in report.findings)
    assert report.sight is not None
    assert 1.0 < report.sight < 1.3
    assert "no counterexample in 4 pairs" in str(report)


def test_more_draws_see_further() -> None:
    few, many = (examine(Counting(), settings=Settings(pairs=1, samples=n)).sight for n in (2_000, 40_000))
    assert few is not None
    assert many is not None
    assert 1.0 < many < few


def test_too_little_noise_is_accused_by_counting() -> None:
    report = examine(Counting(true=1.6), settings=QUICK)
    assert report.accused
    found = report.counterexample
    assert found is not None
    assert found.finding is not None
    assert found.finding.accuses(1.0)
    assert found.finding.epsilon > 1.0
    assert "COUNTEREXAMPLE" in str(report)
    assert "y = [" in str(report)


def test_a_fault_that_needs_no_counting_ends_the_audit_and_is_made_as_small_as_can_be() -> None:
    subject = Counting(fault_from=2)
    report = examine(subject, settings=QUICK)
    found = report.counterexample
    assert found is not None
    assert found.finding is None
    assert found.sentences == ("the plans differ",)
    assert found.about == "2 rows and one more"
    assert report.findings == ()
    assert report.tried.draws == 0


def test_shrinking_ends() -> None:
    subject = Counting(fault_from=0)
    subject.smaller = lambda pair: iter([pair] * 3)  # type: ignore[method-assign]
    examine(subject, settings=Settings(pairs=1, shrinking=10))
    assert len(subject.asked) == 11


def test_the_search_leaves_the_worst_known_pair_for_a_worse_one() -> None:
    """Only one size of table gives itself away: some random pair or a step from one has it."""
    report = examine(Counting(only_at=7), settings=Settings(pairs=24, pilots=24, pilot=300, samples=4_000), seed=3)
    assert report.accused
    assert report.counterexample is not None
    assert "7" in report.counterexample.about or "6" in report.counterexample.about


def test_the_same_seed_looks_at_the_same_pairs_and_another_at_others() -> None:
    one, same, other = Counting(), Counting(), Counting()
    for subject, seed in ((one, 1), (same, 1), (other, 2)):
        examine(subject, settings=QUICK, seed=seed)
    assert one.asked == same.asked
    assert one.asked != other.asked


def test_progress_goes_forward() -> None:
    seen: list[float] = []
    examine(Counting(), settings=QUICK, progress=lambda doing, done: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_report_is_plain_json() -> None:
    for subject in (Counting(), Counting(true=2.0), Counting(fault_from=1)):
        told = json.loads(json.dumps(examine(subject, settings=QUICK).to_dict()))
        assert told["accused"] is (told["counterexample"] is not None)
        assert told["claim"]["points"] == [[1.0, 0.0]]
        assert told["draws"] >= 0


# Claims


def test_a_claim_of_zcdp_is_tried_where_its_delta_can_be_counted() -> None:
    claim = Claim.of(Gaussian(sigma=Fraction(2)).event)
    assert len(claim.points) == 3
    for epsilon, delta in claim.points:
        assert 0.02 <= delta <= 0.5
        assert delta == pytest.approx(zcdp_delta(0.125, epsilon))


def test_a_claim_of_epsilon_is_taken_as_it_is() -> None:
    assert Claim.of(Geometric(epsilon=Fraction(1, 2)).event).points == ((0.5, 0.0),)


def test_an_event_without_a_claim_is_refused() -> None:
    class Silent(GaussianEvent):
        @property
        def rho(self) -> None:  # type: ignore[override]
            return None

        @property
        def epsilon(self) -> None:
            return None

    event: Event = Silent(sigma=Fraction(1), sensitivity=Fraction(1), neighbors=Neighbors.ADD_REMOVE)
    with pytest.raises(AccountingError, match="nothing to audit"):
        Claim.of(event)


# Mechanisms


def _specimen(name: str) -> OfSpecimen:
    return OfSpecimen(find_specimen(name))


@pytest.mark.parametrize("name", ["geometric", "gaussian", "randomized response"])
def test_specimens_are_not_accused(name: str) -> None:
    report = examine(_specimen(name), settings=Settings(pairs=3, pilots=2, steps=1, samples=4_000))
    assert not report.accused, str(report)


@pytest.mark.parametrize("name", ["geometric", "laplace", "permute-and-flip", "exponential", "noisy max"])
def test_made_up_pairs_are_neighbours(name: str) -> None:
    subject = _specimen(name)
    needs = subject.specimen.mechanism.needs
    pairs = list(itertools.islice(subject.pairs(Chance(name)), 1, 30))
    assert pairs
    for pair in pairs:
        x, y = (np.atleast_1d(np.asarray(side, dtype=float)) for side in (pair.x, pair.y))
        steps = np.abs(x - y)
        moved = steps.max() if needs.norm == "score" else steps.sum()
        assert moved <= float(needs.sensitivity)
        if needs.monotone:
            assert (y >= x).all() or (y <= x).all()


def test_a_mechanism_whose_draws_are_not_of_its_law_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RandomizedResponse.repeat
    monkeypatch.setattr(
        RandomizedResponse,
        "repeat",
        lambda self, value, times: np.where(np.arange(times) % 9, value, honest(self, value, times=times)),
    )
    report = examine(_specimen("randomized response"), settings=QUICK)
    assert report.accused
    assert report.counterexample is not None
    assert "do not fit the stated masses" in " ".join(report.counterexample.sentences)


# Chance


def test_chance_is_fair_and_within_its_bounds() -> None:
    """χ² over ten faces at 1e-6: 54.5 with 9 degrees of freedom."""
    chance = Chance("fair")
    counts = np.bincount([chance.below(10) for _ in range(20_000)], minlength=10)
    assert len(counts) == 10
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 54.5
    assert {chance.between(-1, 1) for _ in range(100)} == {-1, 0, 1}
    assert sorted(chance.shuffle(range(9))) == list(range(9))
    assert len(set(chance.sample(range(9), 4))) == 4
    assert chance.sample([1, 2], 5) in ([1, 2], [2, 1])
    assert [Chance(1).below(1 << 60), Chance("1").below(1 << 60)] == [Chance(1).below(1 << 60)] * 2


def test_a_report_of_nothing_has_no_sight() -> None:
    report = examine(Counting(fault_from=0), settings=QUICK)
    assert isinstance(report, Report)
    assert report.sight is None


class Normal(Counting):
    """The same with Gaussian noise, and a claim at three points; every request for answers is kept."""

    @property
    def claim(self) -> Claim:
        return Claim.of(GaussianEvent(sigma=Fraction(1)))

    def answers(self, value: Sequence[int], *, times: int) -> Any:
        self.asked.append(times)
        return Gaussian.at_rho(rho=Fraction(1, 2)).repeat(len(value), times=times)


def test_all_points_of_a_claim_are_read_from_one_set_of_draws() -> None:
    """Each point still has its own share of the confidence, over both finals and both looks at each."""
    subject = Normal()
    report = examine(subject, settings=QUICK)
    assert not report.accused
    assert len(report.claim.points) == 3
    assert len(report.findings) == 3 * QUICK.finals
    first = QUICK.samples // QUICK.first
    assert subject.asked.count(first) == 2 * QUICK.finals
    assert subject.asked.count(QUICK.samples - first) in (0, 2, 4), "as many as look odd"
    assert report.tried.draws == sum(times for times in subject.asked if times >= QUICK.pilot)
    assert all(one.confidence == pytest.approx(1 - 1e-6 / 12, abs=1e-15) for one in report.findings)


def test_without_a_first_look_all_is_drawn_at_once() -> None:
    subject = Normal()
    report = examine(subject, settings=replace(QUICK, first=1))
    assert subject.asked.count(QUICK.samples) == 2 * QUICK.finals
    assert all(one.confidence == pytest.approx(1 - 1e-6 / 6, abs=1e-15) for one in report.findings)


def test_what_looks_odd_is_drawn_in_full_and_judged_by_all() -> None:
    """Noise for ε = 2 against a claim of 1 looks odd but for one time in 10^9; an ε of 0.1 hardly ever does."""
    for true, draws in ((2.0, draws_that_count(QUICK.samples)), (0.1, draws_that_count(QUICK.samples // QUICK.first))):
        report = examine(Counting(true=true), settings=replace(QUICK, shrinking=0))
        assert report.accused is (true > 1)
        assert all(one.counts.draws == draws for one in report.findings)


def test_many_numbers_below_a_bound() -> None:
    found = Chance("a").many_below(6, 60_000)
    assert found.tolist() == Chance("a").many_below(6, 60_000).tolist()
    assert found.tolist() != Chance("b").many_below(6, 60_000).tolist()
    assert set(found.tolist()) == set(range(6))
    assert all(abs(np.count_nonzero(found == one) - 10_000) < 500 for one in range(6))
