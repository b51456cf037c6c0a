"""Many quantiles with a rough count: fewer questions, straight lines between the answers, the same guarantee."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms import Quantiles
from hubbub.mechanisms.selection.quantiles import WORTH


def evenly(many: int, **options: Any) -> Quantiles:
    targets = tuple(Fraction(index, many + 1) for index in range(1, many + 1))
    known: dict[str, Any] = {"epsilon": Fraction(1), "bounds": (Fraction(0), Fraction(100)), "targets": targets}
    return Quantiles(**(known | options))


def test_levels_stop_where_parts_drown_in_noise() -> None:
    assert evenly(99).levels == 7
    for levels in range(2, 8):
        enough = WORTH * levels * 2 ** (levels - 1)
        assert evenly(99, about=enough).levels == levels
        assert evenly(99, about=enough - 1).levels == levels - 1
    assert evenly(99, about=10**9).levels == 7
    assert evenly(99, about=1).levels == 1


def test_more_rows_or_less_budget_mean_fewer_levels() -> None:
    enough = WORTH * 4 * 2**3
    assert evenly(99, about=enough).levels == 4
    assert evenly(99, about=2 * enough, rows=2).levels == 4
    assert evenly(99, about=2 * enough - 1, rows=2).levels == 3
    assert evenly(99, about=2 * enough, epsilon=Fraction(1, 2)).levels == 4
    assert evenly(99, about=2 * enough - 1, epsilon=Fraction(1, 2)).levels == 3


def test_the_whole_budget_goes_to_the_levels_that_are_asked() -> None:
    few = evenly(99, about=WORTH * 4 * 2**3)
    assert few.event.epsilon == 1
    assert few.event.rho == Fraction(1, 4) / 8
    assert few.rate(Fraction(1, 2)) == Fraction(1, 4)


def test_quantiles_between_answers_lie_on_straight_lines() -> None:
    """At a huge ε the three asked quartiles are exact, and the rest follows from them."""
    values = np.concatenate([np.linspace(20, 30, 500), np.linspace(30, 70, 500)])
    loud = evenly(7, epsilon=Fraction(10**4), grid=Fraction(1, 1000))
    assert loud.levels == 3
    exact = loud.draw(values)
    assert np.allclose(exact, np.quantile(values, np.arange(1, 8) / 8), atol=0.2)

    class TwoLevels(Quantiles):
        __slots__ = ()

        @property
        def levels(self) -> int:
            return 2

    two = TwoLevels(epsilon=loud.epsilon, bounds=loud.bounds, grid=loud.grid, targets=loud.targets)
    lined = two.draw(values)
    assert np.allclose(lined[[1, 3, 5]], exact[[1, 3, 5]], atol=0.2)
    assert lined[2] == pytest.approx((lined[1] + lined[3]) / 2, abs=0.01)
    assert lined[4] == pytest.approx((lined[3] + lined[5]) / 2, abs=0.01)
    # beyond the outermost answers the neighbouring line goes on: a bound is no answer
    assert lined[0] == pytest.approx(lined[1] - (lined[3] - lined[1]) / 2, abs=0.01)
    assert lined[6] == pytest.approx(lined[5] + (lined[5] - lined[3]) / 2, abs=0.01)


def test_answers_stay_in_order_and_within_bounds() -> None:
    mechanism = evenly(31, about=40, grid=Fraction(1))
    assert mechanism.levels == 1
    for values in ([], [0.0], [100.0] * 50, list(range(100)), [float("nan"), float("inf")] * 10):
        answers = mechanism.draw(values)
        assert (np.diff(answers) >= 0).all()
        assert answers.min() >= 0
        assert answers.max() <= 100


def test_a_rough_count_keeps_the_loss_within_epsilon_exhaustively() -> None:
    mechanism = Quantiles(
        epsilon=Fraction(1),
        bounds=(Fraction(0), Fraction(3)),
        grid=Fraction(1),
        targets=(Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
        tie_bits=0,
        about=10,
    )
    assert mechanism.levels == 1
    outputs = list(itertools.product(range(4), repeat=3))
    worst = 0.0
    for size in range(4):
        for held in itertools.combinations_with_replacement(range(4), size):
            before = np.array([mechanism.log_mass(held, output) for output in outputs])
            assert np.exp(before).sum() == pytest.approx(1)
            for added in range(4):
                after = np.array([mechanism.log_mass((*held, added), output) for output in outputs])
                possible = np.isfinite(before)
                assert (possible == np.isfinite(after)).all()
                worst = max(worst, float(np.abs(before[possible] - after[possible]).max()))
    assert 0.5 < worst <= 1 + 1e-9


def test_one_part_left_is_read_off_its_own_line_rounded_down() -> None:
    mechanism = Quantiles(
        epsilon=Fraction(1),
        bounds=(Fraction(0), Fraction(3)),
        grid=Fraction(1),
        targets=(Fraction(1, 4), Fraction(1, 2)),
        tie_bits=0,
        about=1,
    )
    assert mechanism.levels == 1
    outputs = itertools.product(range(4), repeat=2)
    possible = [output for output in outputs if np.isfinite(mechanism.log_mass((1, 2), output))]
    assert possible == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert set(mechanism.repeat((1, 2), times=100)) <= set(possible)


def test_repeat_follows_the_same_law() -> None:
    mechanism = Quantiles(
        epsilon=Fraction(1),
        bounds=(Fraction(0), Fraction(2)),
        grid=Fraction(1),
        targets=(Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
        tie_bits=0,
        about=10,
    )
    drawn = set(mechanism.repeat((1, 1, 2), times=300))
    assert all(np.isfinite(mechanism.log_mass((1, 1, 2), output)) for output in drawn)
    assert len(drawn) > 1


@pytest.mark.parametrize("about", [0, -1, 2.5, True, "10", float("nan")])
def test_bad_counts_are_refused(about: Any) -> None:
    with pytest.raises(ParameterError, match="about must be a whole number at least 1"):
        evenly(9, about=about)
