"""Calibration: the bound is above the exact law, and no smaller noise would do."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import pytest
from mpmath import mp, mpf

from hubbub.errors import AccountingError, ParameterError
from hubbub.privacy import calibrate as c
from hubbub.privacy.accountant import compose, delta_of, epsilon_of
from hubbub.privacy.events.event import DiscreteGaussianEvent, DiscreteLaplaceEvent, GaussianEvent, RepeatedEvent
from hubbub.privacy.gaussian_curves import _integrate, _sum_terms
from hubbub.privacy.loss import Approx, Pure, Rdp, Zcdp
from tests.privacy.exact import discrete_gaussian, hockey_stick, real, within

MILLIONTH = Fraction(1, 10**6)


def exact_delta(sigma: Fraction, epsilon: Fraction, shift: int) -> Any:
    """Term by term at fifty digits, with the normaliser by Poisson summation where that converges at once."""
    s, e = real(sigma), real(epsilon)
    threshold = e * s * s / shift - mpf(shift) / 2
    total, k = mpf(0), int(mp.floor(threshold)) + 1
    first = k
    while True:
        term = mp.exp(-(mpf(k) ** 2) / (2 * s * s)) * -mp.expm1(-(k - threshold) * shift / (s * s))
        total += term
        if k > max(first, 0) + 2 and term < total * mpf(10) ** -25:
            break
        k += 1
    if sigma < 1:
        return total / (1 + 2 * mp.fsum(mp.exp(-(mpf(n) ** 2) / (2 * s * s)) for n in range(1, 60)))
    dual = mp.fsum(mp.exp(-2 * mp.pi**2 * s * s * n * n) for n in range(1, 60))
    return total / (mp.sqrt(2 * mp.pi) * s * (1 + 2 * dual))


def analytic_delta(sigma: float, epsilon: float, shift: float = 1) -> float:
    """The continuous Gaussian's δ, by the formula of Balle and Wang."""
    a, b = shift / (2 * sigma), epsilon * sigma / shift
    return float(mp.ncdf(a - b) - mp.exp(epsilon) * mp.ncdf(-a - b))


CASES = [
    (Fraction(1), Fraction(1), 1),
    (Fraction(10), Fraction(1, 10), 1),
    (Fraction(1, 2), Fraction(2), 1),
    (Fraction(1, 4), Fraction(1, 2), 1),
    (Fraction(1, 50), Fraction(1, 2), 1),
    (Fraction(1, 20), Fraction(1), 3),  # several whole numbers above the threshold, and all but one without weight
    (Fraction(37, 10), Fraction(1, 100), 2),
    (Fraction(3), Fraction(1, 100), 10),
    (Fraction(100), Fraction(1), 100),
    (Fraction(300), Fraction(1, 2), 90),
    (Fraction(5), Fraction(3), 1),
]


@pytest.mark.parametrize(("sigma", "epsilon", "shift"), CASES)
def test_delta_of_the_discrete_law(sigma: Fraction, epsilon: Fraction, shift: int) -> None:
    bound = c.discrete_gaussian_delta(sigma=sigma, epsilon=epsilon, sensitivity=shift)
    assert within(bound, min(mpf(1), exact_delta(sigma, epsilon, shift)), relative=1e-10)


def test_the_sum_is_the_hockey_stick_and_smaller_shifts_cost_less() -> None:
    sigma, epsilon = Fraction(5, 2), Fraction(3, 4)
    p = discrete_gaussian(sigma, reach=40)
    deltas = [hockey_stick(p, discrete_gaussian(sigma, shift=shift, reach=40), epsilon) for shift in (1, 2, 3)]
    for shift, delta in zip((1, 2, 3), deltas, strict=True):
        assert within(c.discrete_gaussian_delta(sigma=sigma, epsilon=epsilon, sensitivity=shift), delta, relative=1e-10)
    assert deltas == sorted(deltas)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "shift"),
    [
        (Fraction(9000), Fraction(1), 2000),
        (Fraction(9000), Fraction(1, 10), 2000),
        (Fraction(9000), Fraction(1, 100), 20),
        (Fraction(8500), Fraction(1, 1000), 3000),
        (Fraction(2000), Fraction(1), 700),
    ],
)
def test_the_integral_for_wide_laws_stays_above_the_sum(sigma: Fraction, epsilon: Fraction, shift: int) -> None:
    threshold = epsilon * sigma * sigma / shift - Fraction(shift, 2)
    wide, exact = _integrate(sigma, shift, threshold, epsilon), _sum_terms(sigma, shift, threshold, epsilon)
    slack = Fraction(1, 10**9) if sigma > 8192 and threshold < 0 else Fraction(0)
    assert (
        exact * (1 - Fraction(1, 10**11)) < wide < exact * (1 + 40 * (Fraction(shift) / sigma + 1) ** 2 / sigma) + slack
    )


def test_the_two_computations_meet_at_their_border() -> None:
    for shift, epsilon in [(1, Fraction(1, 1000)), (1500, Fraction(1)), (8192, Fraction(1, 4))]:
        below = c.discrete_gaussian_delta(sigma=8192, epsilon=epsilon, sensitivity=shift)
        above = c.discrete_gaussian_delta(sigma=Fraction(8192) + Fraction(1, 2**20), epsilon=epsilon, sensitivity=shift)
        assert abs(above / below - 1) < Fraction(3, 10**6)


def test_extreme_deltas() -> None:
    assert c.discrete_gaussian_delta(sigma=1, epsilon=Fraction(1, 10), sensitivity=1000) == 1
    assert c.discrete_gaussian_delta(sigma=10**5, epsilon=Fraction(1, 10), sensitivity=10**9) == 1
    tiny = c.discrete_gaussian_delta(sigma=100, epsilon=2)
    assert 0 < tiny < Fraction(1, 10**2000)
    assert exact_delta(Fraction(30), Fraction(1), 1) <= real(c.discrete_gaussian_delta(sigma=30, epsilon=1))


@pytest.mark.parametrize(
    ("epsilon", "delta", "shift"),
    [
        (Fraction(1), MILLIONTH, 1),
        (Fraction(1, 10), Fraction(1, 10**9), 1),
        (Fraction(5), Fraction(1, 10**5), 3),
        (Fraction(1, 2), Fraction(1, 20), 1),
        (Fraction(4), Fraction(1, 100), 1),
        (Fraction(1), MILLIONTH, 10**6),
    ],
)
def test_least_sigma(epsilon: Fraction, delta: Fraction, shift: int) -> None:
    sigma = c.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=shift)
    assert c.discrete_gaussian_delta(sigma=sigma, epsilon=epsilon, sensitivity=shift) <= delta
    assert sigma.numerator.bit_length() <= 33
    if shift < 100:
        assert exact_delta(sigma, epsilon, shift) <= real(delta)
        assert exact_delta(sigma * (1 - MILLIONTH), epsilon, shift) > real(delta)
    by_zcdp = c.gaussian_sigma_zcdp(rho=c.rho_of(epsilon=epsilon, delta=delta), sensitivity_squared=shift**2)
    assert sigma < by_zcdp
    assert c.gaussian_sigma_vector(epsilon=epsilon, delta=delta, sensitivity_squared=shift**2, coordinates=1) == sigma
    for coordinates in (None, 2):
        vector = c.gaussian_sigma_vector(
            epsilon=epsilon, delta=delta, sensitivity_squared=shift**2, coordinates=coordinates
        )
        assert vector == sigma if shift == 1 else vector < by_zcdp


def test_more_noise_is_not_always_less_delta() -> None:
    narrow, wide = (c.discrete_gaussian_delta(sigma=sigma, epsilon=2) for sigma in (0.5, 0.6))
    assert narrow < Fraction(11, 100) < wide
    assert exact_delta(Fraction(0.5), Fraction(2), 1) < exact_delta(Fraction(0.6), Fraction(2), 1)


def analytic_sigma(epsilon: float, delta: float) -> float:
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if analytic_delta(middle, epsilon) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 1e-3), (2.0, 1e-4), (2.0, 1e-6)])
def test_the_analytic_gaussian_under_noises_on_integers_and_ours_does_not(epsilon: float, delta: float) -> None:
    planted = Fraction(analytic_sigma(epsilon, delta))
    p, q = discrete_gaussian(planted, reach=60), discrete_gaussian(planted, shift=1, reach=60)
    assert hockey_stick(p, q, epsilon) > 1.05 * delta
    ours = c.gaussian_sigma(epsilon=epsilon, delta=delta)
    p, q = discrete_gaussian(ours, reach=60), discrete_gaussian(ours, shift=1, reach=60)
    assert hockey_stick(p, q, epsilon) <= delta


def test_the_classic_gaussian_fails_beyond_one_and_ours_does_not() -> None:
    epsilon, delta = 10.0, 1e-5
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert analytic_delta(classic, epsilon) > 1.5 * delta
    assert c.discrete_gaussian_delta(sigma=classic, epsilon=epsilon) > delta
    assert exact_delta(c.gaussian_sigma(epsilon=epsilon, delta=delta), Fraction(epsilon), 1) <= delta


def test_exact_formulas() -> None:
    assert c.laplace_scale(epsilon=Fraction(1, 3), sensitivity=2) == 6
    assert c.laplace_scale(epsilon=0.1) == 1 / Fraction(0.1)
    assert c.gaussian_sigma_zcdp(rho=Fraction(1, 8)) == 2
    sigma = c.gaussian_sigma_zcdp(rho=Fraction(1, 3), sensitivity_squared=5)
    assert 0 <= sigma**2 - Fraction(15, 2) < Fraction(1, 10**7)
    hair = Fraction(4) + Fraction(1, 2**100)
    assert c.gaussian_sigma_zcdp(rho=1 / (2 * hair)) ** 2 >= hair
    rho = c.rho_of(epsilon=1, delta=1e-6)
    assert float(rho) == pytest.approx(0.0243559703595, rel=1e-9)
    assert c.epsilon_of_rho(rho=rho, delta=1e-6) <= 1 + Fraction(1, 10**12)
    assert c.epsilon_of_rho(rho=rho * (1 + MILLIONTH), delta=1e-6) > 1
    assert c.delta_of_rho(rho=rho, epsilon=1) == pytest.approx(1e-6, rel=1e-9)


def test_least_scale_of_a_plan() -> None:
    target = Approx(epsilon=Fraction(1), delta=MILLIONTH)

    def plan(scale: Fraction) -> RepeatedEvent:
        return RepeatedEvent(event=DiscreteLaplaceEvent(scale=scale), count=50)

    scale = c.least(plan, target=target, bits=12)
    assert delta_of([plan(scale)], epsilon=1) <= 1e-6
    assert delta_of([plan(scale * Fraction(998, 1000))], epsilon=1) > 1e-6
    assert scale < 50
    pure = c.least(plan, target=Pure(epsilon=Fraction(1)))
    assert pure == 50
    thirds = c.least(plan, target=Pure(epsilon=Fraction(3)))
    assert Fraction(50, 3) <= thirds <= Fraction(50, 3) * (1 + Fraction(1, 1 << 22))
    sigma = c.least(lambda s: [GaussianEvent(sigma=s)] * 8, target=Zcdp(rho=Fraction(1)), start=Fraction(1, 64))
    assert sigma == 2
    rdp = c.least(lambda s: DiscreteGaussianEvent(sigma=s, dimension=4), target=target, method="rdp", bits=16)
    assert epsilon_of([DiscreteGaussianEvent(sigma=rdp, dimension=4)], delta=1e-6, method="rdp") <= 1
    assert c.least(plan, target=Pure(epsilon=Fraction(1)), start=Fraction(10**9)) == 50
    for bits in (3, 61, 8.0):
        with pytest.raises(ParameterError, match="bits"):
            c.least(plan, target=Pure(epsilon=Fraction(1)), bits=cast(int, bits))
    with pytest.raises(ParameterError, match="target"):
        c.least(plan, target=Rdp(orders=(2.0,), values=(1.0,)))
    with pytest.raises(AccountingError, match="No scale"):
        c.least(lambda _: DiscreteLaplaceEvent(scale=Fraction(1)), target=Pure(epsilon=Fraction(1, 2)))
    with pytest.raises(AccountingError, match="Every scale"):
        c.least(lambda _: DiscreteLaplaceEvent(scale=Fraction(1)), target=Pure(epsilon=Fraction(1)))
    assert compose([plan(scale)]).implies(target)


def test_the_search_doubles_255_times_and_no_more() -> None:
    last = Fraction(1 << 255)
    assert c._bisect(lambda scale: scale >= last, Fraction(1), 24) == last
    with pytest.raises(AccountingError, match=r"2\^255"):
        c._bisect(lambda scale: scale > last, Fraction(1), 24)


def stepping(at: Fraction, delta: Fraction) -> Callable[..., Fraction]:
    return lambda sigma, *_: delta if sigma >= at else Fraction(1)


SEARCHES: list[tuple[str, Callable[..., Fraction], tuple[Any, ...]]] = [
    ("delta_rounded_up", c._one_integer, (1,)),
    ("vector_delta_rounded_up", c._vector, (Fraction(2), 2)),
]


@pytest.mark.parametrize(("bound", "search", "change"), SEARCHES)
def test_a_sigma_is_enough_if_its_delta_is_the_target_and_it_is_no_less_than_a_millionth(
    bound: str, search: Any, change: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for step, least in ((Fraction(3), Fraction(3)), (Fraction(0), Fraction(1, 1 << 20))):
        monkeypatch.setattr(c, bound, stepping(step, MILLIONTH))
        assert search.__wrapped__(Fraction(1), MILLIONTH, *change) == least


@pytest.mark.parametrize(("bound", "search", "change"), SEARCHES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(12)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), MILLIONTH, Fraction(1, 1 << 200)])
def test_lines_find_what_halves_find(
    bound: str, search: Any, change: tuple[Any, ...], epsilon: Fraction, delta: Fraction
) -> None:
    mass = getattr(c, bound)
    sigma = search.__wrapped__(epsilon, delta, *change)
    start = 2 * sigma if sigma > 1 else sigma
    assert sigma == c._bisect(lambda scale: mass(scale, epsilon, *change) <= delta, start, c._SIGMA_BITS)


def test_vectors_use_the_whole_part_of_their_shift_in_one_coordinate() -> None:
    one = c.gaussian_sigma_vector(epsilon=1, delta=MILLIONTH, sensitivity_squared=Fraction(39, 10), coordinates=1)
    assert one == c.gaussian_sigma(epsilon=1, delta=MILLIONTH)
    two = c.gaussian_sigma_vector(epsilon=1, delta=MILLIONTH, sensitivity_squared=Fraction(41, 10), coordinates=1)
    assert two == c.gaussian_sigma(epsilon=1, delta=MILLIONTH, sensitivity=2)
    for bad in (0, True, 1.5):
        with pytest.raises(ParameterError, match="coordinates"):
            c.gaussian_sigma_vector(epsilon=1, delta=MILLIONTH, coordinates=cast(int, bad))


@pytest.mark.parametrize("bad", [float("nan"), -1, 0, float("inf"), 1e-400, True, "1", None], ids=repr)
def test_bad_numbers_are_refused(bad: Any) -> None:
    makers: list[Callable[[], Any]] = [
        lambda: c.laplace_scale(epsilon=bad),
        lambda: c.laplace_scale(epsilon=1, sensitivity=bad),
        lambda: c.rho_of(epsilon=bad, delta=0.5),
        lambda: c.rho_of(epsilon=1, delta=bad),
        lambda: c.epsilon_of_rho(rho=bad, delta=0.5),
        lambda: c.epsilon_of_rho(rho=1, delta=bad),
        lambda: c.delta_of_rho(rho=bad, epsilon=1),
        lambda: c.delta_of_rho(rho=1, epsilon=bad),
        lambda: c.discrete_gaussian_delta(sigma=bad, epsilon=1),
        lambda: c.discrete_gaussian_delta(sigma=1, epsilon=bad),
        lambda: c.discrete_gaussian_delta(sigma=1, epsilon=1, sensitivity=bad),
        lambda: c.gaussian_sigma(epsilon=bad, delta=0.1),
        lambda: c.gaussian_sigma(epsilon=1, delta=bad),
        lambda: c.gaussian_sigma(epsilon=1, delta=0.1, sensitivity=bad),
        lambda: c.gaussian_sigma_zcdp(rho=bad),
        lambda: c.gaussian_sigma_zcdp(rho=1, sensitivity_squared=bad),
        lambda: c.gaussian_sigma_vector(epsilon=bad, delta=0.1, sensitivity_squared=2),
        lambda: c.gaussian_sigma_vector(epsilon=1, delta=bad, sensitivity_squared=2),
        lambda: c.gaussian_sigma_vector(epsilon=1, delta=0.1, sensitivity_squared=bad),
    ]
    for make in makers:
        with pytest.raises(ParameterError):
            make()
    for certain in (c.rho_of, c.gaussian_sigma, c.gaussian_sigma_vector):
        with pytest.raises(ParameterError, match="delta"):
            certain(epsilon=1, delta=1)
