"""Specimens of sample-and-aggregate, on recorded outputs of blocks."""

from fractions import Fraction

from hubbub.mechanisms.local_sensitivity.subsample import BlockMean, BlockMedian
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen
from hubbub.privacy.sensitivity import Neighbors

ONE = Fraction(1)
UNIT = (Fraction(0), ONE)


def _mean(name: str, **options: Neighbors) -> Specimen:
    """Two blocks; a unit takes one output from one end to the other, or both."""
    mechanism = BlockMean(epsilon=ONE, bounds=UNIT, grid=ONE, blocks=2, **options)
    changed = (1.0, 1.0) if options else (1.0, 0.0)
    return Specimen(
        name=name,
        mechanism=mechanism,
        pair=((0.0, 0.0), changed),
        twin=BlockMean(epsilon=TWIN * ONE, bounds=UNIT, grid=ONE, blocks=2, **options),
        outputs=tuple(mechanism.value_of(steps) for steps in range(-80, 83)),
        large=True,
    )


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (
        _mean("block mean"),
        _mean("block mean, replaced", neighbors=Neighbors.REPLACE_ONE),
        Specimen(
            name="block median",
            mechanism=BlockMedian(epsilon=ONE, bounds=(Fraction(0), Fraction(8)), grid=ONE, blocks=2),
            pair=((0.0, 0.0), (0.0, 8.0)),
            twin=BlockMedian(epsilon=Fraction(10, 3), bounds=(Fraction(0), Fraction(8)), grid=ONE, blocks=2),
            outputs=tuple(float(step) for step in range(9)),
            loose=True,
        ),
    )
