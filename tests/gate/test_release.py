"""Releases carry honest intervals, say why when there are none, and draw themselves."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import HubbubError, MissingExtra, ParameterError
from hubbub.gate.release import Release
from hubbub.mechanisms import (
    Exponential,
    Gaussian,
    Geometric,
    GridGaussian,
    Laplace,
    LaplaceThreshold,
    Mechanism,
    TruncatedGeometric,
)

ONE = hb.Sensitivity(l0=1, linf=Fraction(1))


def release(mechanism: Mechanism, value: Any, *, grid: Fraction | None = Fraction(1)) -> Release:
    delta = Fraction(1, 1000) if mechanism.event.epsilon is None else Fraction(0)
    gate = hb.Meter({"town": hb.Budget(epsilon=Fraction(50), delta=delta)})
    return gate.measure(
        mechanism, hb.Secret(value, hb.Facts(account="town", sensitivity=ONE, grid=grid)), label="people"
    )


CASES: list[tuple[Mechanism, Fraction | None]] = [
    (Geometric(epsilon=Fraction(1, 3)), Fraction(1)),
    (Geometric(epsilon=Fraction(1, 3)), Fraction(1, 8)),
    (Gaussian(sigma=Fraction(7, 2)), Fraction(1)),
    (Laplace(epsilon=Fraction(1, 2), sensitivity=Fraction(1), grid=Fraction(1, 4)), None),
    (GridGaussian(rho=Fraction(1, 8), sensitivity=Fraction(1), grid=Fraction(1, 4)), None),
    (TruncatedGeometric(epsilon=Fraction(1, 3), low=0, high=20), Fraction(1)),
]


@pytest.mark.parametrize(("mechanism", "grid"), CASES)
def test_intervals_cover_as_often_as_they_say(mechanism: Mechanism, grid: Fraction | None) -> None:
    """20,000 independent intervals at 80%: below 78% only with probability under 1e-6 (binomial, 7 standard errors)."""
    exact = 3 if grid is not None else 2.6
    truth = exact * float(grid) if grid is not None else exact
    times = 20_000
    around = release(mechanism, np.full(times, exact), grid=grid).interval(0.8)
    covered = np.mean((around.low <= truth) & (truth <= around.high))
    assert covered > 0.78
    assert covered < 0.97, "an interval much wider than needed is not honest either"


def test_intervals_together_cover_all_coordinates() -> None:
    """Of 400 vectors at 90%, fewer than 320 covered would have probability under 1e-7."""
    covered = 0
    for _ in range(400):
        around = release(Geometric(epsilon=Fraction(1)), np.zeros(50, dtype=np.int64)).interval(0.9, together=True)
        covered += bool(((around.low <= 0) & (around.high >= 0)).all())
    assert 320 < covered < 400


def test_the_interval_is_the_mechanisms_own_quantile() -> None:
    geometric = Geometric(epsilon=Fraction(1, 10))
    one = release(geometric, 1000)
    assert one.interval().high - one.value == geometric.error(beta=0.05) == one.margin()
    assert one.value - one.interval(0.5).low == geometric.error(beta=0.5)


def test_truncated_intervals_stay_within_the_ends() -> None:
    around = release(TruncatedGeometric(epsilon=Fraction(1, 100), low=0, high=20), np.arange(21)).interval()
    assert around.low.min() == 0
    assert around.high.max() == 20


def test_selections_say_why_they_have_no_interval() -> None:
    chosen = Release(
        value=3,
        mechanism=Exponential(epsilon=Fraction(1)),
        event=Exponential(epsilon=Fraction(1)).event,
        account="town",
        entry=1,
        grid=Fraction(1),
    )
    assert "does not add noise" in (chosen.why_no_interval or "")
    with pytest.raises(HubbubError, match="does not add noise"):
        chosen.interval()
    assert repr(chosen) == "Release(3; Exponential, ε = 1, entry 1 of account 'town')"


def test_repr_reads_like_a_sentence() -> None:
    one = release(Geometric(epsilon=Fraction(1, 2)), 5)
    assert repr(one) == f"Release({one.value} ± {one.margin()} (95%); Geometric, ε = 0.5, entry 1 of account 'town')"
    many = release(Gaussian(sigma=Fraction(3)), np.zeros(4, dtype=np.int64))
    assert repr(many).startswith("Release(4 values, each ± 6 (95%); Gaussian, ρ = 0.0555556")


def test_one_value_in_a_vector_still_reads_as_a_vector() -> None:
    assert repr(release(Gaussian(sigma=Fraction(3)), np.zeros(1, dtype=np.int64))).startswith("Release(1 values, each")


def test_the_loss_names_what_was_charged() -> None:
    keys = LaplaceThreshold(epsilon=Fraction(1, 2), delta=Fraction(1, 100))
    gate = hb.Meter({"town": hb.Budget(epsilon=Fraction(50), delta=Fraction(1, 10))})
    shown = gate.measure(keys, hb.Secret({"a": 90}, hb.Facts(account="town", sensitivity=ONE)))
    assert shown.loss == f"ε = 0.5, δ₀ = {float(keys.event.failure):.3g}"
    assert release(Gaussian(sigma=Fraction(3)), 1).loss == "ρ = 0.0555556"
    assert release(Geometric(epsilon=Fraction(1, 2)), 1).loss == "ε = 0.5"
    assert list(shown.value) == ["a"]


def test_without_a_registered_plotter_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hb.report.plot_release is Release.plotter
    monkeypatch.setattr(Release, "plotter", None)
    with pytest.raises(HubbubError, match=r"Import hubbub\.report"):
        release(Geometric(epsilon=Fraction(1)), 5).plot()


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, float("nan"), True, "0.9"])
def test_bad_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(ParameterError, match="confidence must be"):
        release(Geometric(epsilon=Fraction(1)), 5).interval(confidence)
    with pytest.raises(ParameterError, match="confidence must be"):
        release(Geometric(epsilon=Fraction(1)), 5).margin(confidence)


def test_plot_draws_a_bar_and_an_error_bar_for_each_value() -> None:
    four = release(Geometric(epsilon=Fraction(1)), np.array([10, 20, 30, 40]))
    axes = four.plot(names=["a", "b", "c", "d"], title="People")
    assert [bar.get_height() for bar in axes.patches] == four.value.tolist()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c", "d"]
    (segments,) = (container.get_segments() for container in axes.collections)
    assert {round(line[1][1] - line[0][1]) for line in segments} == {2 * four.margin()}
    assert {axes.get_title(loc=place) for place in ("left", "center")} == {"", "People"}, "wherever the style puts it"


def test_plot_refuses_the_wrong_number_of_names() -> None:
    with pytest.raises(ParameterError, match=r"names must be as many as there are values \(1\)"):
        release(Geometric(epsilon=Fraction(1)), 5).plot(names=["a", "b"])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r'pip install "hubbub\[plot\]"'):
        release(Geometric(epsilon=Fraction(1)), 5).plot()
