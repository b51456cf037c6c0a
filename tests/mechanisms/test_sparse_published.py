"""The published wrong sparse vectors, and the slide's, are accused; the right ones on the same inputs are not.

Each accusation is wrong with probability at most 1e-6. Every form here claims ε = 1.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.audit import lower_bound
from hubbub.mechanisms import SparseVector
from tests.mechanisms import published
from tests.mechanisms.published import OneSided, Published, StaleNumbers
from tests.noise.sources import follows

ONE = Fraction(1)
Pair = tuple[tuple[int, ...], tuple[int, ...]]


def moved(below: int, above: int) -> Pair:
    """One unit lifts some answers by one and lowers the others by one; all are at the threshold."""
    return (0,) * (below + above), (1,) * below + (-1,) * above


BROKEN: dict[str, tuple[Any, Pair, int]] = {
    "the slide's": (published.slide(ONE, 1), moved(3, 1), 240_000),
    "the slide's, without its numbers": (published.slide_places(ONE, 1), moved(3, 1), 180_000),
    "Lee and Clifton's": (published.lee_clifton(ONE, 2), moved(2, 2), 240_000),
    "Stoddard and others'": (published.stoddard(ONE), ((0, 1), (1, 0)), 10_000),
    "Chen and others'": (published.chen(ONE), moved(3, 3), 120_000),
    "a bare threshold's": (published.bare_threshold(ONE, 1), moved(6, 1), 180_000),
    "a threshold's noise the other way": (
        OneSided(epsilon=ONE, threshold_up=False, question_up=True),
        ((-1,), (0,)),
        10_000,
    ),
    "a question's noise the other way": (
        OneSided(epsilon=ONE, threshold_up=True, question_up=False),
        ((0,), (-1,)),
        10_000,
    ),
    "both the other way": (OneSided(epsilon=ONE, threshold_up=False, question_up=False), moved(0, 8), 60_000),
    "numbers from the noise of the gaps": (
        StaleNumbers(mechanism=SparseVector(epsilon=ONE, threshold=0)),
        ((-1, 0), (0, -1)),
        60_000,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_accused(name: str) -> None:
    form, (x, y), samples = BROKEN[name]
    finding = lower_bound(form, x, y, samples=samples)
    assert finding.confidence == 1 - 1e-6
    assert finding.accuses(1.0), finding


RIGHT: dict[str, tuple[Any, Pair]] = {
    "Laplace noise": (published.lyu(ONE, 1), moved(3, 1)),
    "Laplace noise, two above": (published.lyu(ONE, 2), moved(4, 2)),
    "ours": (SparseVector(epsilon=ONE, threshold=0), moved(6, 1)),
    "ours, two above": (SparseVector(epsilon=ONE, threshold=0, count=2), moved(4, 2)),
    "ours, numbers": (SparseVector(epsilon=ONE, threshold=0, numbers=Fraction(1, 2)), ((-1, 0), (0, -1))),
    "noise up and up": (OneSided(epsilon=ONE, threshold_up=True, question_up=True), ((-1, 0), (0, -1))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_form_is_not(name: str) -> None:
    form, (x, y) = RIGHT[name]
    assert not lower_bound(form, x, y, samples=30_000).accuses(1.0)


def test_showing_what_was_compared_has_no_bound() -> None:
    """With all the noise that comparisons need: a low number says that the threshold was low, and every answer below
    pays for that anew.
    """

    def loss(form: Published, below: int, shown: Any) -> float:
        x, y = moved(below, 1)
        output = (None,) * below + (shown,)
        return form.log_mass(x, output) - form.log_mass(y, output)

    leaky, right = published.right_but_shows_noisy(ONE, 1), published.lyu(ONE, 1)
    assert [loss(leaky, below, -20) for below in (4, 16, 64)] == pytest.approx([0.75, 3.75, 15.75], abs=1e-6)
    assert max(loss(right, below, "above") for below in (1, 4, 16, 64)) == pytest.approx(1, abs=1e-9)
    assert loss(published.slide_places(ONE, 1), 16, "above") == pytest.approx(1.5, abs=0.01)


def test_the_forms_draw_what_they_say() -> None:
    form = published.slide_places(ONE, 1)
    outputs = [("above",), (None, "above"), (None, None)]
    law = [np.exp(form.log_mass((0, 1)[: len(output)], output)) for output in outputs]
    assert sum(law) == pytest.approx(1)
    drawn = np.array([outputs.index(output) for output in form.repeat((0, 1), times=20_000)])
    assert follows(drawn, range(3), law)
