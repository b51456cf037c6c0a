"""Rounded real noise: the law to the digit, the slow path against the fast one, and nothing told about the scale."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise import rounded
from hubbub.noise.entropy import begin, substitute
from tests.noise.sources import Script, Untouchable, follows

WORD = 1 << 64


def student_masses(reach: int, scale: float, degrees: int) -> np.ndarray:
    """Of -reach … reach, where the ends take what lies beyond them."""
    edges = np.arange(-reach + 1, reach + 1) - 0.5
    return np.diff(np.concatenate([[0.0], stats.t.cdf(edges / scale, degrees), [1.0]]))


@pytest.mark.parametrize("degrees", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(40)])
def test_student_follows_its_law(degrees: int, scale: Fraction) -> None:
    drawn = noise.rounded_student(scale=scale, degrees=degrees, reach=400, size=200_000)
    assert follows(drawn, range(-400, 401), student_masses(400, float(scale), degrees))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(60)])
def test_laplace_follows_its_law_many_at_once_and_one_by_one(scale: Fraction) -> None:
    support = range(-600, 601)
    masses = np.diff(stats.laplace.cdf((np.arange(-600, 602) - 0.5) / float(scale)))
    many = noise.rounded_laplace(scale=scale, reach=10**6, size=100_000)
    single = np.array([noise.rounded_laplace(scale=scale, reach=10**6) for _ in range(20_000)])
    assert follows(many, support, masses)
    assert follows(single, support, masses)


@pytest.mark.parametrize("degrees", [1, 2, 3, 6])
def test_exact_digits_decide_what_floats_decide(degrees: int) -> None:
    points = np.random.default_rng(5).integers(1, 1 << 63, size=(400, 2))
    source = begin("test")
    for a, b in (2 * points).tolist():
        u, v = a / WORD, b / WORD
        below = (u * u + v * v / degrees) ** (degrees + 1) <= u ** (2 * degrees - 2)
        expected = math.floor(17 / 3 * v / u + 0.5) if below else None
        found = rounded._settle(source, a, b, scale=Fraction(17, 3), degrees=degrees, reach=10**9)
        assert found == expected


def test_a_point_whose_digits_do_not_settle_it_draws_more() -> None:
    """b/a is one half to 64 digits, at which the value turns from 0 to 1: the next digits decide."""
    a, b = 1 << 62, 1 << 61
    for more_b, expected in ((0, 0), (WORD - 1, 1)):
        source = Script([1 << 63, more_b])
        source.begin("test", {})
        assert rounded._settle(source, a, b, scale=Fraction(1), degrees=1, reach=9) == expected
        assert source.left == 0


def test_a_point_on_the_curve_draws_until_it_is_off_it() -> None:
    """Degree 1: a² + b² = 1 at a = 3/5, b = 4/5, which no number of digits reaches."""
    a, b = 3 * WORD // 5, 4 * WORD // 5
    above = Script([WORD - 1, WORD - 1])
    assert rounded._settle(above, a, b, scale=Fraction(3), degrees=1, reach=9) is None
    below = Script([0, 0])
    assert rounded._settle(below, a, b, scale=Fraction(3), degrees=1, reach=9) == 4


def test_ratios_beyond_all_floats_are_cut_at_the_reach() -> None:
    # a = 0 to 64 digits: the fast path gives up, and the slow one sees that the value is beyond the reach either way
    script = Script([0, 1 << 62, 0])
    with substitute(script):
        assert noise.rounded_student(scale=Fraction(1), degrees=1, reach=1000) == 1000
    with substitute(Script([1 << 30, 1 << 62, WORD - 1])):
        assert noise.rounded_student(scale=Fraction(1), degrees=1, reach=1000) == -1000
    with substitute(Script([1 << 63, 1 << 62, 0])):
        assert noise.rounded_student(scale=Fraction(4), degrees=1, reach=1000) == 2


def test_the_cut_is_exact() -> None:
    drawn = noise.rounded_student(scale=Fraction(3), degrees=2, reach=4, size=50_000)
    assert drawn.min() == -4
    assert drawn.max() == 4
    assert follows(drawn, range(-4, 5), student_masses(4, 3.0, 2))
    cut = noise.rounded_laplace(scale=Fraction(3), reach=4, size=50_000)
    assert (cut.min(), cut.max()) == (-4, 4)
    assert {noise.rounded_laplace(scale=Fraction(10**9), reach=4) for _ in range(64)} <= {-4, 4}


def test_the_source_is_not_told_the_scale() -> None:
    for scale in (Fraction(3), Fraction(5)):
        heard = Script([1 << 63, 3 << 60, 0])
        with substitute(heard):
            noise.rounded_student(scale=scale, degrees=2, reach=7)
        assert heard.kinds == [("rounded-student", {"degrees": 2, "reach": 7, "size": None})]
        heard = Script([WORD - 1, 0])
        with substitute(heard):
            noise.rounded_laplace(scale=scale, reach=7)
        assert heard.kinds == [("rounded-laplace", {"reach": 7, "size": None})]


@pytest.mark.parametrize("bad", [{"scale": 0}, {"reach": 0}, {"reach": 1 << 63}, {"size": -1}])
def test_bad_arguments_draw_nothing(bad: dict[str, int]) -> None:
    good: dict[str, object] = {"scale": Fraction(1), "reach": 9}
    with substitute(Untouchable()):
        with pytest.raises(ParameterError):
            noise.rounded_laplace(**(good | bad))  # type: ignore[call-overload]
        with pytest.raises(ParameterError):
            noise.rounded_student(**(good | {"degrees": 2} | bad))  # type: ignore[call-overload]
        for degrees in (0, 65, True):
            with pytest.raises(ParameterError):
                noise.rounded_student(scale=Fraction(1), degrees=degrees, reach=9)
