"""One specimen of every mechanism: what the conformance suite, the docs and the audit command go through.

A specimen is calibrated at an ε that an audit of ten thousand draws can see, with the pair of neighbouring inputs on
which it loses most and a twin that really loses 1.25 times what it claims. A mechanism that is not here is not
finished.
"""

import itertools
from fractions import Fraction
from typing import Any

from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.interval import IntervalExponential
from hubbub.mechanisms.keys import OptimalKeys, TruncatedThreshold, WeightedGaussianThreshold
from hubbub.mechanisms.laplace import Geometric, TruncatedGeometric
from hubbub.mechanisms.quantile import Quantile
from hubbub.mechanisms.quantiles import Quantiles
from hubbub.mechanisms.reals import GridGaussian, Laplace
from hubbub.mechanisms.registry_blocks import BLOCKS
from hubbub.mechanisms.registry_distance import SPECIMENS as AT_A_DISTANCE
from hubbub.mechanisms.registry_grouped import SPECIMENS as GROUPED
from hubbub.mechanisms.registry_objective import OBJECTIVE
from hubbub.mechanisms.registry_resolution import RESOLUTION
from hubbub.mechanisms.registry_scattered import SCATTERED
from hubbub.mechanisms.registry_sparse import sparse
from hubbub.mechanisms.registry_spatial import SPATIAL
from hubbub.mechanisms.registry_specimen import TWIN, Specimen, as_items, as_tuple
from hubbub.mechanisms.response import RandomizedResponse
from hubbub.mechanisms.select import Exponential, NoisyMax, PermuteAndFlip, TopK
from hubbub.mechanisms.threshold import GaussianThreshold, LaplaceThreshold
from hubbub.privacy.neighbors import Neighbors

__all__ = ["SPECIMENS", "TWIN", "Specimen"]


def _shown(low: int, high: int) -> tuple[Any, ...]:
    """Every answer of a key selection that knows the one key "a"."""
    return ((), *((("a", count),) for count in range(low, high)))


def _additive() -> list[Specimen]:
    one = Fraction(1)
    quarter = Fraction(1, 4)
    quarters = tuple(step / 4 for step in range(-90, 95))
    return [
        Specimen(
            name="geometric",
            mechanism=Geometric(epsilon=one),
            pair=(0, 1),
            twin=Geometric(epsilon=TWIN),
            outputs=tuple(range(-25, 27)),
            large=True,
        ),
        Specimen(
            name="geometric, replace-one",
            mechanism=Geometric(epsilon=one, sensitivity=2, neighbors=Neighbors.REPLACE_ONE),
            pair=(0, 2),
            twin=Geometric(epsilon=TWIN, sensitivity=2, neighbors=Neighbors.REPLACE_ONE),
            outputs=tuple(range(-45, 48)),
            large=True,
        ),
        Specimen(
            name="truncated geometric",
            mechanism=TruncatedGeometric(epsilon=one, low=0, high=10),
            pair=(4, 5),
            twin=TruncatedGeometric(epsilon=TWIN, low=0, high=10),
            outputs=tuple(range(11)),
            large=True,
        ),
        Specimen(
            name="laplace",
            mechanism=Laplace(epsilon=one, sensitivity=one, grid=quarter),
            pair=(0.125, 1.125),
            twin=Laplace(epsilon=TWIN, sensitivity=one, grid=quarter),
            outputs=quarters,
            large=True,
        ),
        Specimen(
            name="gaussian",
            mechanism=Gaussian(sigma=Fraction(2)),
            pair=(0, 1),
            twin=Gaussian(sigma=Fraction(3, 2)),
            outputs=tuple(range(-14, 16)),
            large=True,
        ),
        Specimen(
            name="grid gaussian",
            mechanism=GridGaussian(rho=Fraction(1, 8), sensitivity=one, grid=quarter),
            pair=(0.125, 1.125),
            twin=GridGaussian(rho=Fraction(2, 9), sensitivity=one, grid=quarter),
            outputs=quarters,
            large=True,
        ),
    ]


def _selecting() -> list[Specimen]:
    one, many = Fraction(1), 40
    return [
        Specimen(
            name="exponential",
            mechanism=Exponential(epsilon=one),
            pair=((0,) * many, (1,) + (-1,) * (many - 1)),
            twin=Exponential(epsilon=Fraction(1304, 1000)),
            outputs=tuple(range(many)),
            large=True,
            loose=True,
        ),
        Specimen(
            name="exponential, monotone",
            mechanism=Exponential(epsilon=one, monotone=True),
            pair=((0,) * many, (1,) + (0,) * (many - 1)),
            twin=Exponential(epsilon=Fraction(1315, 1000), monotone=True),
            outputs=tuple(range(many)),
            large=True,
            loose=True,
        ),
        Specimen(
            name="exponential, prior",
            mechanism=Exponential(epsilon=one, prior=(1, 9)),
            pair=((0, 0), (1, -1)),
            twin=Exponential(epsilon=Fraction(160, 100), prior=(1, 9)),
            outputs=(0, 1),
            large=True,
            loose=True,
        ),
        Specimen(
            name="exponential over intervals",
            mechanism=IntervalExponential(epsilon=one, bounds=(Fraction(0), Fraction(many)), grid=one),
            pair=(((), (0,)), ((1,), (1, -1))),
            twin=IntervalExponential(epsilon=Fraction(1304, 1000), bounds=(Fraction(0), Fraction(many)), grid=one),
            outputs=tuple(range(many + 1)),
            large=True,
            loose=True,
        ),
        Specimen(
            name="permute-and-flip",
            mechanism=PermuteAndFlip(epsilon=one),
            pair=((0, 0), (1, -1)),
            twin=PermuteAndFlip(epsilon=TWIN),
            outputs=(0, 1),
        ),
        Specimen(
            name="noisy max",
            mechanism=NoisyMax(epsilon=one),
            pair=((4, 0), (5, -1)),
            twin=NoisyMax(epsilon=Fraction(8, 5)),
            outputs=(0, 1),
            large=True,
            loose=True,
        ),
        Specimen(
            name="top-k",
            mechanism=TopK(epsilon=one, k=2),
            pair=((0,) * 12, (1, 1) + (-1,) * 10),
            twin=TopK(epsilon=Fraction(8, 5), k=2),
            outputs=tuple(itertools.permutations(range(12), 2)),
            loose=True,
        ),
        Specimen(
            name="quantile",
            mechanism=Quantile(epsilon=one, bounds=(Fraction(0), Fraction(6)), grid=one),
            pair=((1, 1, 6), (1, 1, 6, 6)),
            twin=Quantile(epsilon=Fraction(3, 2), bounds=(Fraction(0), Fraction(6)), grid=one),
            outputs=tuple(range(7)),
            loose=True,
        ),
        Specimen(
            name="quantiles",
            mechanism=_two_quantiles(one),
            pair=((0, 0), (0, 0, 3)),
            twin=_two_quantiles(Fraction(5, 2)),
            outputs=tuple(itertools.product((0.0, 1.0, 2.0, 3.0, 4.0), repeat=2)),
            cell=as_tuple,
            loose=True,
        ),
    ]


def _two_quantiles(epsilon: Fraction) -> Quantiles:
    return Quantiles(
        epsilon=epsilon,
        bounds=(Fraction(0), Fraction(4)),
        grid=Fraction(1),
        targets=(Fraction(1, 3), Fraction(2, 3)),
        tie_bits=0,
    )


def _responding() -> list[Specimen]:
    return [
        Specimen(
            name="randomized response, basic",
            mechanism=RandomizedResponse.basic(),
            pair=(0, 1),
            twin=RandomizedResponse(epsilon=TWIN * Fraction(693147180560, 10**12)),
            outputs=(0, 1),
            large=True,
        ),
        Specimen(
            name="randomized response",
            mechanism=RandomizedResponse(epsilon=Fraction(1), categories=4),
            pair=(0, 1),
            twin=RandomizedResponse(epsilon=TWIN, categories=4),
            outputs=(0, 1, 2, 3),
            large=True,
        ),
    ]


def _key_selecting() -> list[Specimen]:
    one, tenth, fifth = Fraction(1), Fraction(1, 10), Fraction(1, 5)
    unknown: tuple[dict[str, int], dict[str, int]] = ({}, {"a": 1})
    weighted = WeightedGaussianThreshold(epsilon=one, delta=fifth, weight_bits=3)
    return [
        Specimen(
            name="laplace threshold",
            mechanism=LaplaceThreshold(epsilon=one, delta=tenth),
            pair=unknown,
            twin=LaplaceThreshold(epsilon=one, delta=Fraction(1, 2)),
            outputs=_shown(2, 40),
            cell=as_items,
        ),
        Specimen(
            name="laplace threshold, shared key",
            mechanism=LaplaceThreshold(epsilon=one, delta=Fraction(1, 10**6)),
            pair=({"a": 40}, {"a": 41}),
            twin=LaplaceThreshold(epsilon=TWIN, delta=Fraction(1, 10**6)),
            outputs=_shown(2, 75),
            cell=as_items,
            loose=True,
        ),
        Specimen(
            name="gaussian threshold",
            mechanism=GaussianThreshold(epsilon=one, delta=fifth),
            pair=unknown,
            twin=GaussianThreshold(epsilon=one, delta=Fraction(3, 5)),
            outputs=_shown(2, 40),
            cell=as_items,
            loose=True,
        ),
        Specimen(
            name="truncated threshold",
            mechanism=TruncatedThreshold(epsilon=one, delta=tenth),
            pair=unknown,
            twin=TruncatedThreshold(epsilon=one, delta=Fraction(1, 2)),
            outputs=_shown(1, 12),
            cell=as_items,
        ),
        Specimen(
            name="optimal keys",
            mechanism=OptimalKeys(epsilon=one, delta=tenth),
            pair=unknown,
            twin=OptimalKeys(epsilon=one, delta=TWIN * tenth),
            outputs=((), (("a", 0),)),
            cell=as_items,
        ),
        Specimen(
            name="weighted gaussian threshold",
            mechanism=weighted,
            pair=({}, {"a": weighted.weight(1)}),
            twin=WeightedGaussianThreshold(epsilon=one, delta=Fraction(2, 5), weight_bits=3),
            outputs=_shown(2, 160),
            cell=as_items,
            loose=True,
        ),
    ]


SPECIMENS: tuple[Specimen, ...] = (
    *_additive(),
    *_selecting(),
    *_responding(),
    *_key_selecting(),
    *sparse(),
    *AT_A_DISTANCE,
    *GROUPED,
    *BLOCKS,
    *RESOLUTION,
    *SPATIAL,
    *SCATTERED,
    *OBJECTIVE,
)
