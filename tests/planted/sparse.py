"""Sparse vectors as they were published, as a slide has them, and as ours would be with the same mistakes.

The published forms are one mechanism whose form is exchanged; its honest form is that of Lyu, Su and Li.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.audit.specimens import OfSpecimen
from hubbub.audit.subject import Subject
from hubbub.mechanisms.base import Array, Needs
from hubbub.mechanisms.sparse import sparse_vector
from hubbub.mechanisms.sparse.sparse_vector import Found, SparseVector
from hubbub.mechanisms.specimens.specimen import Specimen
from hubbub.noise import laws
from hubbub.privacy.events.event import PureEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.mechanisms import published
from tests.mechanisms.published import Published
from tests.planted.plant import Caught, Patch, Planted, in_place, specimen

ONE = Fraction(1)
Output = tuple[Any, ...]


@lru_cache(maxsize=4096)
def _tails(away: int, scale: Fraction, reach: int) -> Array:
    """P(noise >= bar - x) for bars from -reach to reach, where x is ``away``."""
    if scale == 0:
        return np.array([float(bar <= away) for bar in range(-reach, reach + 1)])
    return np.array([laws.laplace_tail(bar - away, scale) for bar in range(-reach, reach + 1)])


@lru_cache(maxsize=64)
def _bars(scale: Fraction) -> Array:
    reach = math.ceil(40 * scale)
    return np.exp([laws.laplace_log_mass(bar, scale) if scale else 0.0 for bar in range(-reach, reach + 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVector:
    """The questions that are above 0, in the form that ``form`` has now.

    Privacy:
        Claim: Pure(epsilon) for any questions that one unit moves by at most 1 each.
        Proof: as it is published with the form.
        Needs: the form.
        Ref: Lyu, Su, Li 2017.
    """

    epsilon: Fraction = ONE
    form: Published

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.SCORE, sensitivity=ONE, neighbors=Neighbors.ADD_REMOVE)

    @property
    def event(self) -> PureEvent:
        return PureEvent(bound=self.epsilon)

    def draw(self, value: Any) -> Output:
        return self.repeat(value, times=1)[0]

    def repeat(self, value: Any, *, times: int) -> list[Output]:
        return self.form.repeat(value, times=times)

    def log_mass(self, value: tuple[int, ...], output: Output) -> float:
        """Summed over the threshold's noise."""
        form, bars = self.form, _bars(self.form.threshold_scale)
        reach, total = len(bars) // 2, bars.copy()
        for x, seen in zip(value, output, strict=False):
            if seen is None:
                total *= 1 - _tails(x, form.question_scale, reach)
            elif seen == "above":
                total *= _tails(x, form.question_scale, reach)
            else:
                total *= np.arange(-reach, reach + 1) <= seen
                total *= math.exp(laws.laplace_log_mass(seen - x, form.question_scale))
        mass = float(total.sum())
        return math.log(mass) if mass > 0 else -math.inf

    def error(self, *, beta: float) -> float:
        return -float(self.form.question_scale) * math.log(beta)


def _outputs(form: Published, questions: int) -> Iterator[Output]:
    """Every answer: none goes on after the last that is above."""
    reach = math.ceil(25 * form.question_scale)
    shown = tuple(range(-reach, reach + 1)) if form.shows_noisy else ("above",)
    count = questions if form.count is None else form.count
    for above in itertools.product((False, True), repeat=questions):
        places = [place for place, up in enumerate(above) if up]
        end = places[count - 1] + 1 if len(places) >= count else questions
        if any(above[end:]):
            continue
        for numbers in itertools.product(shown, repeat=sum(above)):
            each = iter(numbers)
            yield tuple(next(each) if up else None for up in above[:end])


def one_above(epsilon: Fraction) -> Published:
    """What ends after one answer above."""
    return published.lyu(epsilon, 1)


def two_above(epsilon: Fraction) -> Published:
    """What ends after two."""
    return published.lyu(epsilon, 2)


def _subject(name: str, form: Callable[[], Published], below: int, above: int) -> Callable[[], Subject]:
    def made() -> Subject:
        now = form()
        return OfSpecimen(
            Specimen(
                name=name,
                mechanism=PublishedVector(form=now),
                pair=((0,) * (below + above), (1,) * below + (-1,) * above),
                twin=PublishedVector(form=now),
                outputs=tuple(_outputs(now, below + above)),
                loose=True,
            )
        )

    return made


ONE_ABOVE = _subject("published sparse vector", lambda: one_above(ONE), 6, 1)
TWO_ABOVE = _subject("published sparse vector, two above", lambda: two_above(ONE), 3, 3)


def _form(which: str, wrong: Callable[[Fraction], Published]) -> Patch:
    return in_place(sys.modules[__name__], which, wrong)


# The same mistakes in ours

_settled = SparseVector.__post_init__


def _half_the_noise(self: SparseVector) -> None:
    _settled(self)
    object.__setattr__(self, "question_scale", self.question_scale / 2)


def _without_count(self: SparseVector) -> None:
    _settled(self)
    object.__setattr__(self, "question_scale", self.question_scale / self.count)


_found = sparse_vector._find_above


def _stale_numbers(exact: Array, noisy: Array, bars: Array, spare: Array) -> Found:
    places, gaps, numbers = _found(exact, noisy, bars, spare)
    return places, gaps, tuple(int(noisy[place]) for place, _ in zip(places, numbers, strict=False))


SPARSE = (
    Planted(
        name="seed 001's slide",
        about="Half the noise on comparisons, and the noisy number that was compared is shown (also Roth 2011).",
        subject=ONE_ABOVE,
        patch=_form("one_above", lambda epsilon: published.slide(epsilon, 1)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="the slide without its numbers",
        about="Even when the numbers are kept back, comparisons with half the noise lose too much.",
        subject=ONE_ABOVE,
        patch=_form("one_above", lambda epsilon: published.slide_places(epsilon, 1)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="sparse vector that shows what it compared",
        about="Enough noise, but a low number says that the threshold was low, and every answer below pays again.",
        subject=ONE_ABOVE,
        patch=_form("one_above", lambda epsilon: published.right_but_shows_noisy(epsilon, 1)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="sparse vector with a bare threshold",
        about="No noise on the threshold: then every answer below costs too.",
        subject=ONE_ABOVE,
        patch=_form("one_above", lambda epsilon: published.bare_threshold(epsilon, 1)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="sparse vector of Lee and Clifton",
        about="The noise does not grow with the answers above (2014, algorithm 4).",
        subject=TWO_ABOVE,
        patch=_form("two_above", lambda epsilon: published.lee_clifton(epsilon, 2)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="sparse vector of Stoddard and others",
        about="No noise on the questions, and no end (2014, algorithm 5).",
        subject=TWO_ABOVE,
        patch=_form("two_above", published.stoddard),
        caught=Caught.MASSES,
    ),
    Planted(
        name="sparse vector of Chen and others",
        about="Answers above without end, at the price of none (2015, algorithm 6).",
        subject=TWO_ABOVE,
        patch=_form("two_above", published.chen),
        caught=Caught.MASSES,
    ),
    Planted(
        name="our sparse vector with the slide's noise",
        about="Comparisons with noise for one step where neighbours may be two apart.",
        subject=specimen("sparse vector"),
        patch=in_place(SparseVector, "__post_init__", _half_the_noise),
        caught=Caught.MASSES,
    ),
    Planted(
        name="our sparse vector without its count",
        about="The noise of one answer above is used for several.",
        subject=specimen("sparse vector, two above"),
        patch=in_place(SparseVector, "__post_init__", _without_count),
        caught=Caught.MASSES,
    ),
    Planted(
        name="numbers from the noise that was compared",
        about="A number is bought and not drawn: it is the one that was compared with the threshold.",
        subject=specimen("sparse vector, numbers"),
        patch=in_place(sparse_vector, "_find_above", _stale_numbers),
        caught=Caught.LAW,
    ),
)
