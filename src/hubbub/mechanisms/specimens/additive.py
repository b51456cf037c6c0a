"""Specimens of additive noise and of randomized response."""

from fractions import Fraction

from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric, TruncatedGeometric
from hubbub.mechanisms.additive.reals import GridGaussian, Laplace
from hubbub.mechanisms.additive.response import RandomizedResponse
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen
from hubbub.privacy.sensitivity import Neighbors


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (*_additive(), *_responding())


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
