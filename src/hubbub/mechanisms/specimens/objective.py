"""Specimens of objective perturbation, in one dimension, where the law of a minimum has a closed form."""

from fractions import Fraction

import numpy as np

from hubbub.mechanisms.objective.convex import Examples, MarginLoss
from hubbub.mechanisms.objective.objective import ObjectivePerturbation
from hubbub.mechanisms.specimens.specimen import Specimen

STEP = Fraction(1, 64)


def examples(*signs: int) -> Examples:
    """Rows at 1, on these sides."""
    many = len(signs)
    return Examples(
        features=np.ones((many, 1)), signs=np.array(signs, dtype=np.float64).reshape(-1, 1), weights=np.ones(many)
    )


def at(epsilon: Fraction, delta: Fraction = Fraction(0), ridge: Fraction | None = None) -> ObjectivePerturbation:
    """For one column: where its law can be written down."""
    return ObjectivePerturbation.at(
        loss=MarginLoss.HINGE, width=1, epsilon=epsilon, delta=delta, step=STEP, ridge=ridge
    )


def _outputs(reach: int) -> tuple[float, ...]:
    return tuple(float(place * STEP) for place in range(-reach, reach + 1))


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    pure = at(Fraction(1))
    approximate = at(Fraction(1, 2), Fraction(1, 10))
    return (
        Specimen(
            name="objective perturbation",
            mechanism=pure,
            pair=(examples(), examples(1)),
            twin=at(Fraction(1288, 1000), ridge=pure.ridge),
            outputs=_outputs(180),
        ),
        Specimen(
            name="objective perturbation, gaussian",
            mechanism=approximate,
            pair=(examples(), examples(1)),
            twin=at(Fraction(1, 2), Fraction(4, 25), ridge=approximate.ridge),
            outputs=_outputs(48),
            loose=True,
        ),
    )
