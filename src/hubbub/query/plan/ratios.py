"""Noisy numbers of thousands of groups, exactly, as ratios of whole numbers: no object of a fraction for each.

One denominator serves all groups. A ratio of whole numbers becomes a float as a ``Fraction`` does, rounded once; and
rounding keeps order, so bounds can be clamped to afterwards. So these numbers are those of fractions to the last bit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Ratios:
    """A number for each group, over one denominator, and the margin of all of them."""

    numerators: Sequence[int]
    denominator: int
    margin: Fraction

    def refine(self) -> tuple[Iterator[int], int, int]:
        """Return numerators and the numerator of the margin over one denominator, and that."""
        times = self.margin.denominator
        numerators = (numerator * times for numerator in self.numerators)
        return numerators, self.margin.numerator * self.denominator, self.denominator * times


def list_intervals(ratios: Ratios) -> Iterator[tuple[int, int, int] | tuple[float, float, float]]:
    """List each number with both ends of its interval: whole where all three are, else floats."""
    numerators, margin, by = ratios.refine()
    for value in numerators:
        low, high = value - margin, value + margin
        if value % by or low % by or high % by:
            yield value / by, low / by, high / by
        else:
            yield value // by, low // by, high // by


def list_whole_intervals(ratios: Ratios) -> Iterator[tuple[int, int, int]]:
    """List each number rounded half to even, with both ends of its interval rounded outwards."""
    numerators, margin, by = ratios.refine()
    for value in numerators:
        below, rest = divmod(value, by)
        up = 2 * rest > by or (2 * rest == by and below % 2 == 1)
        yield below + up, (value - margin) // by, -((-value - margin) // by)


def divide_sums(
    totals: Ratios, counts: Ratios, *, origin: Fraction, bounds: Ends
) -> Iterator[tuple[float | None, float, float]]:
    """List means from an origin within bounds, as ``function.divide`` does for one group: with the box of both margins,
    and with all of the bounds where the count may be below 1."""
    low, high = float(bounds[0]), float(bounds[1])
    added, around, of = totals.refine()
    rows, margin, by = counts.refine()
    start, unit = origin.numerator * of, origin.denominator * of
    scale = origin.denominator * by

    def mean(total: int, count: int) -> float:
        return max(low, min(high, (start * count + scale * total) / (unit * count)))

    for total, count in zip(added, rows, strict=True):
        if count < by:
            yield None, low, high
        elif count - margin < by:
            yield mean(total, count), low, high
        else:
            sizes = (count - margin, count + margin)
            ends = [mean(total + sign * around, size) for sign in (-1, 1) for size in sizes]
            yield mean(total, count), min(ends), max(ends)


def divide_ends(
    ends: Iterable[tuple[int, int]], *, half: int, grid: Fraction, off: Fraction, origin: Fraction, bounds: Ends
) -> Iterator[tuple[float | None, float, float]]:
    """List means from the noisy distances a and b from both bounds, as ``average.combine_mean`` does for one group.

    With a + b = 2 · half · n for n rows, a mean is origin + grid · half · (a − b) / (a + b), and the error of that is
    off / n.
    """
    low, high = float(bounds[0]), float(bounds[1])
    by = origin.denominator * grid.denominator * off.denominator
    start = origin.numerator * grid.denominator * off.denominator
    step = grid.numerator * half * origin.denominator * off.denominator
    away = off.numerator * 2 * half * origin.denominator * grid.denominator
    for below, above in ends:
        both = below + above
        if both <= 0:
            yield None, low, high
            continue
        value, unit = start * both + step * (below - above), by * both
        found = [max(low, min(high, end / unit)) for end in (value, value - away, value + away)]
        yield (found[0] if both >= 2 * half else None), found[1], found[2]
