"""Noise with a secret scale: the claimed ε and δ against the laws themselves, at high precision and over all pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.mechanisms.local_sensitivity.dilation import LaplaceDilated, Student
from hubbub.privacy.events.event import ApproxEvent, PureEvent
from hubbub.privacy.sensitivity import Neighbors


def worst_student_loss(law: Student, *, shift: float, dilation: float) -> float:
    """The largest log-ratio of densities when the scale grows by e^dilation and the centre moves by shift/N."""
    d, u = law.degrees, np.concatenate([np.linspace(-60, 60, 12_001), [-1e9, 1e9]])
    moved = shift / float(law.multiplier) * min(1.0, math.exp(dilation))
    first = stats.t.logpdf(u, d)
    second = stats.t.logpdf((u - moved) * math.exp(-dilation), d) - dilation
    return float(np.abs(first - second).max())


@pytest.mark.parametrize("degrees", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_student_loses_at_most_epsilon_and_close_to_it(degrees: int, epsilon: Fraction) -> None:
    law = Student(epsilon=epsilon, degrees=degrees)
    beta = float(law.beta or 0)
    losses = [
        worst_student_loss(law, shift=shift, dilation=dilation)
        for shift in (-1.0, -0.5, 0.0, 0.5, 1.0)
        for dilation in (-beta, -beta / 2, 0.0, beta / 2, beta)
    ]
    assert max(losses) <= float(epsilon)
    assert max(losses) >= 0.55 * float(epsilon)
    if epsilon < 1:
        assert max(losses) >= 0.97 * float(epsilon)


@pytest.mark.parametrize("degrees", [1, 2, 3])
def test_the_closed_form_of_epsilon(degrees: int) -> None:
    """β(d-1)/2 + (d+1)/2·√(β² + 1/dN²), with N rounded up by less than 2^-60."""
    for beta in (Fraction(1, 100), Fraction(1, 10), Fraction(3, 10)):
        law = Student(epsilon=Fraction(1), degrees=degrees, beta=beta)
        with mp.workdps(40):
            b, n = mp.mpf(beta.numerator) / beta.denominator, mp.mpf(law.multiplier.numerator)
            n /= law.multiplier.denominator
            total = b * (degrees - 1) / 2 + mp.mpf(degrees + 1) / 2 * mp.sqrt(b * b + 1 / (degrees * n * n))
            assert 0 <= 1 - total < mp.mpf(10) ** -17


def test_the_sharper_bound_needs_less_noise_than_the_published_one() -> None:
    """Bun and Steinke: (d+1)β + (d+1)/(2√d·N) = ε, at their own best β = ε/2(d+1)."""
    published = {d: (d + 1) / (2 * math.sqrt(d)) * 2 * 2 * (d + 1) for d in (1, 2, 3)}
    ours = {
        d: float(law.multiplier / (law.beta or 1))
        for d in (1, 2, 3)
        for law in [Student(epsilon=Fraction(1), degrees=d)]
    }
    assert published[1] == pytest.approx(8)
    assert ours[1] == pytest.approx(2, rel=1e-4)
    assert ours[2] == pytest.approx(4.761, rel=1e-3)
    assert ours[3] == pytest.approx(8.13, rel=1e-3)
    assert all(ours[d] < published[d] / 2 for d in ours)


@pytest.mark.parametrize("degrees", [1, 2, 4])
def test_the_default_beta_is_the_best_for_dense_data(degrees: int) -> None:
    law = Student(epsilon=Fraction(2), degrees=degrees)
    best = law.multiplier / (law.beta or 1)
    for factor in (Fraction(19, 20), Fraction(21, 20)):
        other = Student(epsilon=Fraction(2), degrees=degrees, beta=factor * (law.beta or 1))
        assert other.multiplier / (other.beta or 1) > best


def laplace_delta(law: LaplaceDilated, *, shift: float, dilation: float) -> float:
    """The hockey-stick divergence of scale 1 at 0 from scale e^dilation, in the wider-to-narrower order, integrated."""
    e, moved = float(law.epsilon), shift / float(law.multiplier) * math.exp(min(0.0, dilation))

    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-40, 40, 8001)
    y = (edges[:-1, None] + edges[1:, None]) / 2 + (edges[1] - edges[0]) / 2 * nodes
    first = np.exp(-np.abs(y)) / 2
    second = np.exp(-np.abs(y - moved) * math.exp(-dilation) - dilation) / 2
    return float((np.maximum(0.0, first - math.exp(e) * second) * weights).sum() * (edges[1] - edges[0]) / 2)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6)])
def test_laplace_keeps_its_delta_and_comes_close_to_it(epsilon: Fraction, delta: Fraction) -> None:
    law = LaplaceDilated(epsilon=epsilon, delta=delta)
    beta = float(law.beta or 0)
    found = [
        laplace_delta(law, shift=shift, dilation=dilation)
        for shift in (0.0, 0.7, 1.0)
        for dilation in (-beta, -beta / 2, 0.0, beta / 2, beta)
    ]
    assert max(found) <= float(delta) * (1 + 1e-4)
    if delta < Fraction(1, 100):
        assert max(found) >= float(delta) * 0.98
        assert found.index(max(found)) == 10  # all of the shift, and the narrowest neighbour


@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 1 << 100)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_the_closed_form_of_delta(epsilon: Fraction, delta: Fraction) -> None:
    law = LaplaceDilated(epsilon=epsilon, delta=delta)
    assert law.beta is not None
    with mp.workdps(60):
        e, b, room = (mp.mpf(x.numerator) / x.denominator for x in (epsilon, law.beta, 1 / law.multiplier))
        a = mp.expm1(b)
        found = -mp.expm1(-b) * (mp.exp(-(e - room + b) / a) + mp.exp(-(e + room + b) / a)) / 2
        assert found <= mp.mpf(delta.numerator) / delta.denominator
        assert room <= e
        assert b + room * mp.exp(-b) <= e


def test_laplace_beats_the_published_calibration() -> None:
    """Nissim, Raskhodnikova and Smith's β = ε/2ln(2/δ), N = 2/ε: 58 times 1/ε² where ours needs less than 38."""
    delta = Fraction(1, 10**6)
    law = LaplaceDilated(epsilon=Fraction(1), delta=delta)
    assert law.multiplier / (law.beta or 1) < 0.65 * 2 * 2 * math.log(2 / float(delta))
    assert LaplaceDilated(epsilon=Fraction(1), delta=delta, beta=Fraction(1, 29)).multiplier < 2


def test_tails() -> None:
    law = Student(epsilon=Fraction(1))
    scale = Fraction(7, 3)
    wide = float(law.multiplier * scale)
    assert law.tail(np.array([1.0, 5.0]), scale) == pytest.approx(
        [stats.t.sf(0.5 / wide, 2), stats.t.sf(4.5 / wide, 2)]
    )
    other = LaplaceDilated(epsilon=Fraction(1), delta=Fraction(1, 100))
    wide = float(other.multiplier * scale)
    assert other.tail(np.array([1.0, 5.0]), scale) == pytest.approx(
        [math.exp(-0.5 / wide) / 2, math.exp(-4.5 / wide) / 2]
    )


def test_events() -> None:
    both = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
    for relation in both:
        pure = Student(epsilon=Fraction(1, 3)).event(relation)
        assert pure == PureEvent(bound=Fraction(1, 3), neighbors=relation)
        approx = LaplaceDilated(epsilon=Fraction(1, 3), delta=Fraction(1, 7)).event(relation)
        assert approx == ApproxEvent(bound=Fraction(1, 3), failure=Fraction(1, 7), neighbors=relation)


@pytest.mark.parametrize("degrees", [1, 2, 3])
def test_the_limits_of_beta(degrees: int) -> None:
    most = Fraction(1, degrees)
    Student(epsilon=Fraction(1), degrees=degrees, beta=most - Fraction(1, 10**6))
    for beta in (most, most + 1, Fraction(1, 1 << 21), Fraction(0)):
        with pytest.raises(ParameterError, match="beta must be"):
            Student(epsilon=Fraction(1), degrees=degrees, beta=beta)
    Student(epsilon=Fraction(1), degrees=degrees, beta=Fraction(1, 1 << 20))
    for beta in (Fraction(1), Fraction(1, 2), Fraction(1, 1 << 21)):
        with pytest.raises(ParameterError, match="beta must be"):
            LaplaceDilated(epsilon=Fraction(1), delta=Fraction(1, 10**6), beta=beta)
    for delta in (Fraction(0), Fraction(1), Fraction(1, 1 << 101)):
        with pytest.raises(ParameterError, match="delta must be"):
            LaplaceDilated(epsilon=Fraction(1), delta=delta)
