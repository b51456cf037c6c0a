"""Specimens of what looks at the distance to trouble (smooth sensitivity, propose-test-release), and of pricing."""

import math
from fractions import Fraction
from typing import Any

from hubbub.mechanisms.local_sensitivity.propose import ProposedQuantile, ProposeTestRelease, StableMode
from hubbub.mechanisms.local_sensitivity.smooth import SmoothQuantile, SmoothSensitivity
from hubbub.mechanisms.selection.price import Price
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen
from hubbub.privacy.sensitivity import Neighbors

_TOP, _DISTANCES, _MOVED = 400, 12, 20


def _any(epsilon: Fraction, **options: Any) -> SmoothSensitivity:
    bounds, grid = (Fraction(0), Fraction(_TOP)), Fraction(1)
    return SmoothSensitivity(epsilon=epsilon, bounds=bounds, grid=grid, distances=_DISTANCES, **options)


def _farthest_pair(mechanism: SmoothSensitivity) -> tuple[Any, Any]:
    """Neighbours as far apart as they may be in both ways at once: one unit away, e^β apart in their bounds."""
    nearer = math.floor(_MOVED * math.exp(-float(mechanism.decay)))
    wide, narrow = (_MOVED,) * _DISTANCES, (nearer,) + (_MOVED,) * (_DISTANCES - 1)
    return (_TOP // 2, wide), (_TOP // 2 + nearer, narrow)


def _smooth() -> list[Specimen]:
    one, outputs = Fraction(1), tuple(range(_TOP + 1))
    student, cauchy = _any(one), _any(one, degrees=1)
    laplace = _any(one, delta=Fraction(1, 10))
    ages = (Fraction(0), Fraction(60))
    return [
        Specimen(
            name="smooth sensitivity",
            mechanism=student,
            pair=_farthest_pair(student),
            twin=_any(Fraction(1447, 1000), beta=student.decay),
            outputs=outputs,
            large=True,
        ),
        Specimen(
            name="smooth sensitivity, cauchy",
            mechanism=cauchy,
            pair=_farthest_pair(cauchy),
            twin=_any(Fraction(19, 10), degrees=1, beta=cauchy.decay),
            outputs=outputs,
            large=True,
            loose=True,
        ),
        Specimen(
            name="smooth sensitivity, laplace",
            mechanism=laplace,
            pair=_farthest_pair(laplace),
            twin=_any(Fraction(14, 10), delta=Fraction(1, 10), beta=laplace.decay),
            outputs=outputs,
            loose=True,
        ),
        Specimen(
            name="smooth median",
            mechanism=SmoothQuantile(epsilon=one, bounds=ages, grid=one),
            pair=((0, 20, 20, 20, 30, 40, 40, 40, 60, 60, 60), (0, 20, 20, 20, 30, 30, 40, 40, 40, 60, 60, 60)),
            twin=SmoothQuantile(epsilon=Fraction(2), bounds=ages, grid=one),
            outputs=tuple(range(61)),
            large=True,
            loose=True,
        ),
    ]


def _proposing() -> list[Specimen]:
    two, tenth, quarter = Fraction(2), Fraction(1, 10), Fraction(1, 4)
    on: dict[str, Any] = {"bounds": (Fraction(0), Fraction(30)), "grid": Fraction(1), "proposed": Fraction(1)}
    unstable = (3,) * 8
    answers = (None, *range(31))
    return [
        Specimen(
            name="propose-test-release",
            mechanism=ProposeTestRelease(epsilon=two, delta=tenth, distances=8, **on),
            pair=((5, unstable), (25, unstable)),
            twin=ProposeTestRelease(epsilon=two, delta=quarter, distances=8, **on),
            outputs=answers,
        ),
        Specimen(
            name="proposed median",
            mechanism=ProposedQuantile(epsilon=two, delta=tenth, **on),
            pair=((5, 25), (5, 25, 25)),
            twin=ProposedQuantile(epsilon=two, delta=quarter, **on),
            outputs=answers,
        ),
        Specimen(
            name="stable mode",
            mechanism=StableMode(epsilon=Fraction(1), delta=tenth),
            pair=({"a": 3, "b": 2}, {"a": 3, "b": 3}),
            twin=StableMode(epsilon=Fraction(1), delta=quarter),
            outputs=(None, "a", "b"),
        ),
        Specimen(
            name="stable mode, replace-one",
            mechanism=StableMode(epsilon=Fraction(1), delta=tenth, neighbors=Neighbors.REPLACE_ONE),
            pair=({"a": 4, "b": 2}, {"a": 3, "b": 3}),
            twin=StableMode(epsilon=Fraction(1), delta=quarter, neighbors=Neighbors.REPLACE_ONE),
            outputs=(None, "a", "b"),
        ),
    ]


def _pricing() -> list[Specimen]:
    one = Fraction(1)
    some = ((5, 0),) * 3
    return [
        Specimen(
            name="price",
            mechanism=_price(one),
            pair=(some[:2], (*some[:2], (0, 1))),
            twin=_price(TWIN),
            outputs=(1, 5),
        ),
        Specimen(
            name="price, exponential",
            mechanism=_price(one, flip=False),
            pair=(some, (*some, (0, 1))),
            twin=_price(Fraction(1303, 1000), flip=False),
            outputs=(1, 5),
            large=True,
        ),
    ]


def _price(epsilon: Fraction, **options: Any) -> Price:
    return Price(epsilon=epsilon, prices=(Fraction(1), Fraction(5)), **options)


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (*_smooth(), *_proposing(), *_pricing())
