"""A value in whole steps of a tally's grid: clamped, then rounded, row by row, to an integer of 64 bits.

A real is clamped, moved and divided in DOUBLE, operation by operation, and rounded half to even: a function of the one
value, the same on every machine. Whole numbers take no float at all.
"""

import math
from fractions import Fraction

from hubbub.engines.nodes.scalars import Guarded, Scalar
from hubbub.engines.nodes.words import case, cast, constant, fit, function, infix
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.query.ops import Histogram, Tally

_MOST_PROPORTION = 1 << 20
_SMALL = 1 << 31
_UNBOUNDED = "Reals are added up within bounds. Declare bounds for the column."


def steps(tally: Tally | Histogram, value: Scalar, kind: Kind) -> Scalar:
    """Return the steps of a value that is a column: it is looked at several times."""
    return _real(tally, value) if kind.type is Type.REAL else _whole(tally, value, kind)


def _real(tally: Tally | Histogram, value: Scalar) -> Scalar:
    if tally.clamp is None:
        raise CapacityError(_UNBOUNDED)
    try:
        low, high, origin, grid = (float(part) for part in (*tally.clamp, tally.origin, tally.grid))
    except OverflowError:
        raise CapacityError("The bounds are beyond what a real holds. Declare closer ones.") from None
    if not all(_within(_round((end - origin) / grid), INT64) for end in (low, high)):
        raise CapacityError("The bounds are more than 2^63 steps of the grid apart. Declare a coarser grid.")
    real = of(Type.REAL)
    moved = _clamp(value, constant(low, real), constant(high, real))
    if origin:
        moved = infix("-", moved, constant(origin, real))
    if grid != 1:
        # Dividing by a power of two and multiplying by its inverse are the same, and the second is faster.
        exact = math.frexp(grid)[0] == 0.5 and math.isfinite(1 / grid)
        divided = infix("*", moved, constant(1 / grid, real)) if exact else infix("/", moved, constant(grid, real))
        moved = Guarded(divided, "never")
    return fit(moved, "int64")


def _round(value: float) -> int:
    return round(value) if math.isfinite(value) else INT128[1]


def find_ends(tally: Tally, kind: Kind) -> tuple[int, int]:
    """Return the least and the most steps that a value can be; for values that ``steps`` has not refused.

    All that is done to a value keeps order, in DOUBLE too, so the ends of its range become the ends of its steps.
    """
    if kind.type is Type.REAL:
        if tally.clamp is None:
            raise CapacityError(_UNBOUNDED)
        low, high, origin, grid = (float(part) for part in (*tally.clamp, tally.origin, tally.grid))
        return _round((low - origin) / grid), _round((high - origin) / grid)
    low_, high_ = (Fraction(end) for end in kind.range)
    if tally.clamp is not None:
        low_, high_ = (min(max(end, tally.clamp[0]), tally.clamp[1]) for end in (low_, high_))
    return round((low_ - tally.origin) / tally.grid), round((high_ - tally.origin) / tally.grid)


def add_steps(tally: Tally, value: Scalar) -> Scalar:
    """Add up the steps of rows: in 128 bits, or in 64, where 2^32 rows could not leave these."""
    if tally.argument is None:
        raise ParameterError("argument", "given for a total", None)
    small = all(-_SMALL < end < _SMALL for end in find_ends(tally, tally.argument.kind))
    return function("sum_small" if small else "sum", value)


def _whole(tally: Tally | Histogram, value: Scalar, kind: Kind) -> Scalar:
    """Compute exactly (x − a/b) / (p/q), which is (x·b·q − a·q) / (b·p), rounded half to even.

    Rounding keeps order, so bounds that are not whole are clamped to again in steps.
    """
    low, high = kind.range
    ends = tally.clamp or (Fraction(low), Fraction(high))
    outer = math.floor(ends[0]), math.ceil(ends[1])
    clamped = _clamp(value, _number(outer[0]), _number(outer[1])) if outer[0] > low or outer[1] < high else value
    low, high = (min(max(end, outer[0]), outer[1]) for end in (low, high))
    scale = tally.origin.denominator * tally.grid.denominator
    shift = tally.origin.numerator * tally.grid.denominator
    divisor = tally.origin.denominator * tally.grid.numerator
    first, last = (round((end - tally.origin) / tally.grid) for end in (low, high))
    below = (low * scale - shift) // divisor
    reach = [low * scale, high * scale, shift, high * scale - shift, low * scale - shift, below * divisor, 2 * divisor]
    most = max(abs(end) for end in reach) + abs(below * divisor)
    if not (_within(first, INT64) and _within(last, INT64) and most <= INT128[1]):
        raise CapacityError("The values are more than 2^63 steps of the grid apart. Bound them, or use a coarser grid.")
    if divisor == scale == 1 and _within(most, INT64) and not kind.wide:
        node = infix("-", clamped, _number(shift)) if shift else clamped
    else:
        node = cast(clamped, "int128")
        if scale != 1:
            node = infix("*", node, _number(scale, wide=True))
        node = infix("-", node, _number(shift + below * divisor, wide=True))
        if divisor != 1:
            node = _nearest(node, divisor, odd=below % 2 == 1)
        node = fit(infix("+", node, _number(below, wide=True)), "int64")
    inner = [round((end - tally.origin) / tally.grid) for end in ends]
    return node if all(end.denominator == 1 for end in ends) else clamp_whole(node, inner[0], inner[1])


def _nearest(node: Scalar, divisor: int, *, odd: bool) -> Scalar:
    """Divide a number from 0 on, and round half to even (to odd, where an odd number is added afterwards)."""
    by = _number(divisor, wide=True)
    whole = infix("//", node, by)
    twice = infix("*", infix("%", node, by), _number(2, wide=True))
    parity = infix("%", whole, _number(2, wide=True))
    tie = infix("=", twice, by)
    uneven = infix("=", parity, _number(0 if odd else 1, wide=True))
    up = infix("or", infix(">", twice, by), infix("and", tie, uneven))
    return infix("+", whole, cast(up, "int128"))


def bound_total(node: Scalar, bounds: tuple[int, int]) -> Scalar:
    """Clamp what one unit adds to one group, in 64 bits; 0 where it has no value."""
    if not (_within(bounds[0], INT64) and _within(bounds[1], INT64)):
        raise CapacityError("What one unit may add does not fit 64 bits. Use a coarser grid.")
    low, high = bounds
    if low <= 0 <= high:
        return fit(_bring(function("coalesce", node, _number(0)), _number(low), _number(high)), "int64")
    return function("coalesce", fit(clamp_whole(node, low, high), "int64"), _number(0))


def cut_in_proportion(total: Scalar, many: Scalar, most: int | None, allowed: Scalar | None = None) -> Scalar:
    """Cut a total of too many values in proportion: of more than ``most``, or ``allowed``, which is no more.

    2^63 steps a row, 2^40 rows and 2^20 times fit 128 bits.
    """
    if most is None:
        return total
    if most > _MOST_PROPORTION:
        raise CapacityError(f"A unit may count with at most {_MOST_PROPORTION:,} rows in a group. Declare fewer.")
    whole = _number(most) if allowed is None else allowed
    cut = infix("//", infix("*", total, cast(whole, "int128")), cast(many, "int128"))
    return case((infix(">", many, whole), cut), otherwise=total)


def clamp_whole(node: Scalar, low: int, high: int) -> Scalar:
    """Clamp a whole number."""
    wide = not (_within(low, INT64) and _within(high, INT64))
    return _clamp(node, _number(low, wide=wide), _number(high, wide=wide))


def _clamp(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Clamp; missing values stay missing. This is faster than least and greatest, which would replace them."""
    return case(
        (infix("<", value, low), low),
        (infix(">", value, high), high),
        otherwise=value,
    )


def _bring(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Clamp what is never missing and long to write: it is named once, and the engine reads every word."""
    return function("least", function("greatest", value, low), high)


def _number(value: int, *, wide: bool = False) -> Scalar:
    wide = wide or not _within(value, INT64)
    return constant(value, integer(*(INT128 if wide else INT64)))


def _within(value: int, limits: tuple[int, int]) -> bool:
    return limits[0] <= value <= limits[1]
