"""Specimens of what is selected: one of several candidates, or quantiles."""

import itertools
from fractions import Fraction

from hubbub.mechanisms.selection.bracket import QuantileBracket
from hubbub.mechanisms.selection.interval import IntervalExponential
from hubbub.mechanisms.selection.quantile import Quantile
from hubbub.mechanisms.selection.quantiles import Quantiles
from hubbub.mechanisms.selection.select import Exponential, NoisyMax, PermuteAndFlip, TopK
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen, as_tuple


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    one, many = Fraction(1), 40
    return (
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
        Specimen(
            name="quantile bracket",
            mechanism=_bracket(one),
            pair=((1,), (1, 4)),
            twin=_bracket(Fraction(6)),
            outputs=tuple(itertools.product((0.0, 1.0, 2.0, 3.0, 4.0), repeat=3)),
            cell=as_tuple,
            loose=True,
        ),
    )


def _bracket(epsilon: Fraction) -> QuantileBracket:
    return QuantileBracket(epsilon=epsilon, bounds=(Fraction(0), Fraction(4)), grid=Fraction(1))


def _two_quantiles(epsilon: Fraction) -> Quantiles:
    return Quantiles(
        epsilon=epsilon,
        bounds=(Fraction(0), Fraction(4)),
        grid=Fraction(1),
        targets=(Fraction(1, 3), Fraction(2, 3)),
        tie_bits=0,
    )
