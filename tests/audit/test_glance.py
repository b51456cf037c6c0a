"""Looking at some draws before all of them: cheaper on the honest, and what it gives away in power is what it says.

Whether an honest sample looks odd at first is a matter of a coin; nothing here hangs on it.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from hubbub.audit import conformance, law
from hubbub.audit.exact import Laws
from hubbub.audit.specimens import OfSpecimen
from hubbub.errors import ConformanceError
from hubbub.mechanisms.specimens.registry import build_specimens, find_specimen

TWINS = [one for one in build_specimens() if len(one.outputs) <= 200]


def laws(specimen: Any) -> tuple[Laws, Laws]:
    honest, twin = (Laws.of(one, specimen.pair, specimen.outputs) for one in (specimen.mechanism, specimen.twin))
    return honest, twin


def looks(specimen: Any) -> tuple[int, int]:
    honest, twin = laws(specimen)
    return law.first_looks(specimen, honest=honest, twin=twin, level=conformance.LAW_ALARM)


@pytest.mark.parametrize("specimen", TWINS, ids=lambda one: one.name)
def test_a_twin_looks_odd_at_first_wherever_all_draws_would_see_it(specimen: Any) -> None:
    """Both looks together miss at most a quarter more than all draws do, and one in a thousand."""
    honest, twin = laws(specimen)
    together, singly = looks(specimen)
    by_all = law.miss_probability(honest, twin, draws=law.FEW, level=conformance.LAW_ALARM)
    at_first = law.miss_probability(honest, twin, draws=singly, level=law.SUSPICION)
    assert singly == law.FEW or at_first <= max(1e-3, by_all / 4)
    assert together == (250_000 if specimen.large else 25_000)
    assert law.miss_probability(honest, twin, draws=together, level=law.SUSPICION) < 1e-6


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("wrong", [0.98, 1.02])
def test_a_quarter_of_a_million_draws_finds_a_scale_two_percent_off_odd(scale: float, wrong: float) -> None:
    def masses(width: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        ratio = math.exp(-1 / width)
        return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-60, 61))

    stated, real = masses(scale), masses(scale * wrong)
    assert law.power(stated, real, draws=250_000, false_alarm=law.SUSPICION) > 1 - 1e-4


def test_it_is_cheaper_where_the_twin_is_easily_seen_and_no_cheaper_than_it_may_be() -> None:
    sizes = {one.name: looks(one)[1] for one in TWINS}
    assert sizes["geometric"] == 1_000
    assert sizes["exponential"] > 3_000
    assert sum(sizes.values()) < len(sizes) * law.FEW / 4


@dataclass(frozen=True)
class Watched:
    """A mechanism whose draws are counted, and whose single draws may be another's."""

    honest: Any
    single: Any
    drawn: dict[str, int] = field(default_factory=lambda: {"draw": 0, "repeat": 0})

    @property
    def event(self) -> Any:
        return self.honest.event

    @property
    def needs(self) -> Any:
        return self.honest.needs

    def draw(self, value: Any) -> Any:
        self.drawn["draw"] += 1
        return self.single.draw(value)

    def repeat(self, value: Any, *, times: int) -> Any:
        self.drawn["repeat"] += times
        return self.honest.repeat(value, times=times)

    def log_mass(self, value: Any, output: Any) -> float:
        return float(self.honest.log_mass(value, output))

    def error(self, *, beta: float) -> float:
        return float(self.honest.error(beta=beta))


def watched(*, wrong: bool) -> tuple[Any, Watched]:
    found = find_specimen("randomized response")
    mechanism = Watched(found.mechanism, found.twin if wrong else found.mechanism)
    return replace(found, mechanism=mechanism), mechanism


def test_what_looks_odd_is_drawn_in_full_and_judged_by_all() -> None:
    """The twin's single draws: a first look passes one in a thousand on each of two inputs, both one in a million."""
    specimen, mechanism = watched(wrong=True)
    with pytest.raises(ConformanceError, match="10000 answers by draw do not fit the stated masses"):
        conformance.check_law(specimen, first=looks(specimen))
    assert mechanism.drawn["draw"] >= law.FEW


def test_an_honest_one_is_mostly_left_after_the_first_look() -> None:
    """Each of four looks is odd at most one time in five: that all are odd, five times over, is one in 10^14."""
    specimen, mechanism = watched(wrong=False)
    first = looks(specimen)
    for _ in range(5):
        conformance.check_law(specimen, first=first)
    assert mechanism.drawn["draw"] >= 10 * first[1]
    assert mechanism.drawn["draw"] < 10 * law.FEW or mechanism.drawn["repeat"] < 10_000_000
    mechanism.drawn.update(draw=0, repeat=0)
    assert "1000000 by repeat" in conformance.check_law(specimen)
    assert mechanism.drawn == {"draw": 2 * law.FEW, "repeat": 2_000_000}, "without a first look, all are drawn"


def test_an_audit_begins_with_a_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing looks odd, no more is drawn; where everything does, everything is."""
    for suspicion, draws in ((0.0, 2_000), (1.0, 20_000)):
        specimen, mechanism = watched(wrong=False)
        subject = OfSpecimen(specimen, [(1_000, 1_000)])
        monkeypatch.setattr(conformance, "SUSPICION", suspicion)
        subject.faults(next(subject.pairs(None)))  # type: ignore[arg-type]
        assert mechanism.drawn["draw"] == draws
