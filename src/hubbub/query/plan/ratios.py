"""Noisy numbers of thousands of groups, exactly, as ratios of whole numbers: no object of a fraction for each.

One denominator serves all groups. A ratio of whole numbers becomes a float as a ``Fraction`` does, rounded once; and
rounding keeps order, so bounds can be clamped to afterwards. So these numbers are those of fractions to the last bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Ratios:
    """A number for each group, over one denominator."""

    numerators: Sequence[int]
    denominator: int

    def refine(self, margin: Fraction) -> tuple[Iterator[int], int, int]:
        """Return numerators and the numerator of a margin over one denominator, and that."""
        times = margin.denominator
        numerators = (numerator * times for numerator in self.numerators)
        return numerators, margin.numerator * self.denominator, self.denominator * times


def list_intervals(ratios: Ratios, margin: Fraction) -> Iterator[tuple[int, int, int] | tuple[float, float, float]]:
    """List each number with both ends of its interval: whole where all three are, else floats."""
    numerators, around, by = ratios.refine(margin)
    for value in numerators:
        low, high = value - around, value + around
        if value % by or low % by or high % by:
            yield value / by, low / by, high / by
        else:
            yield value // by, low // by, high // by


def list_whole_intervals(ratios: Ratios, margin: Fraction) -> Iterator[tuple[int, int, int]]:
    """List each number rounded half to even, with the whole numbers that lie within the margin of it: the exact one is
    whole, and among these whenever the noise is within the margin. The rounded number is always one of them."""
    numerators, around, by = ratios.refine(margin)
    for value in numerators:
        below, rest = divmod(value, by)
        nearest = below + (2 * rest > by or (2 * rest == by and below % 2 == 1))
        yield nearest, min(nearest, -((around - value) // by)), max(nearest, (value + around) // by)


def divide_sums(
    totals: Ratios, counts: Ratios, *, origin: Fraction, bounds: Ends, least: int
) -> Iterator[float | None]:
    """List means from an origin within bounds; None where the count is below the least that it is where there is
    anything, or not above 0."""
    low, high = float(bounds[0]), float(bounds[1])
    scale, of = origin.denominator * counts.denominator, origin.denominator * totals.denominator
    start = origin.numerator * totals.denominator
    for total, count in zip(totals.numerators, counts.numerators, strict=True):
        if count < least * counts.denominator or count <= 0:
            yield None
            continue
        top, bottom = start * count + scale * total, of * count
        try:
            yield max(low, min(high, top / bottom))
        except OverflowError:  # beyond what a float holds, before it is clamped
            yield high if top > 0 else low
