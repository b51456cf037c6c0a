"""Numbers side by side as single ones, for an engine that is told every number by itself, such as a database.

What each function of ``totals.WIDE`` means is written here in ``totals.FUNCTIONS``, operation by operation.
"""

from itertools import pairwise

from hubbub.errors import NotAllowed
from hubbub.query.totals import Number, number

MOST_POINTS = 256
"""Each row is compared with each point in one statement, which must not grow beyond reading."""
MOST_COLUMNS = 12
"""The columns of a grid: in more of them it is made over random directions, which only arrays are."""


class Scalars:
    """A translation of Numbers into single ones. What is used twice is written once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Number, list[Number]]] = {}

    def of(self, wide: Number) -> list[Number]:
        """Return one Number for each that stands side by side."""
        if id(wide) not in self._made:
            self._made[id(wide)] = wide, self._write(wide)
        return self._made[id(wide)][1]

    def one(self, single: Number) -> Number:
        """Return the one Number that this is."""
        (made,) = self.of(single)
        return made

    def _write(self, wide: Number) -> list[Number]:
        parts = [self.of(argument) for argument in wide.arguments]
        first, held = parts[0] if parts else [], wide.constants
        match wide.function:
            case "columns":
                return [Number("column", (), (held[0] + place,)) for place in range(wide.width or 0)]
            case "constants":
                return [number(one) for one in held]
            case "beside":
                return [one for part in parts for one in part]
            case "part":
                return first[int(held[0]) : int(held[1])]
            case "added":
                return [_add(first)]
            case "clip":
                return [_clip(one, *held) for one in first]
            case "known_by":
                pairs = zip(first, parts[1], strict=True)
                return [
                    one + (number(held[0]) - one) * (number(1.0) - by.equal(by).fill_missing(0.0)) for one, by in pairs
                ]
            case "exponent":
                return [_exponent(one, *held) for one in first]
            case "shorten":
                return _shorten(first, held[0], parts[1][0] if len(parts) > 1 else None)
            case "nearest":
                return [_nearest(first, held)]
            case "project":
                raise NotAllowed(
                    f"In an engine a grid has at most {MOST_COLUMNS} columns. Choose some, or fit it on an array."
                )
        many = wide.width or 1
        if wide.function == "pick" and len(first) < many:
            each_has = len(held) // many
            lists = [held[place * each_has : (place + 1) * each_has] for place in range(many)]
            return [first[0].pick(one) if len(set(one)) > 1 else number(one[0]) for one in lists]
        each = [part * many if len(part) == 1 else part for part in parts]
        return [Number(wide.function, tuple(part[place] for part in each), held) for place in range(many)]


def _add(numbers: list[Number]) -> Number:
    """Add one after the other, from the first on."""
    total = numbers[0]
    for one in numbers[1:]:
        total = total + one
    return total


def _clip(one: Number, low: float, high: float) -> Number:
    return Number("least", (Number("greatest", (one, number(low))), number(high)))


def _exponent(one: Number, least: float, most: float) -> Number:
    """A logarithm may be off by its last bit: powers of two, which are exact, decide."""
    value = one.fill_missing(0.0)
    size = _clip(Number("greatest", (value, number(0.0) - value)), 2.0 ** (least - 1), 2.0**most)
    about = _clip(size.log2().floor() - (least - 2), 1.0, most - least + 1)
    powers = tuple(2.0**exponent for exponent in range(int(least) - 2, int(most) + 2))
    below = about - about.pick(powers).above(size)
    exponent = below + 1.0 - (below + 1.0).pick(powers).above(size)
    return _clip(exponent + (least - 1), least, most)


def _shorten(row: list[Number], most: float, weight: Number | None) -> list[Number]:
    length = _add([one * one for one in row]).sqrt()
    scale = number(most) / Number("greatest", (length, number(1.0)))
    limit = number(most * most)
    if weight is not None:
        scale, limit = scale * weight.sqrt(), limit * weight
    whole = [(one * scale).truncate() for one in row]
    beyond = _add([one * one for one in whole]).above(limit)
    return [one - one.sign() * beyond for one in whole]


def _nearest(row: list[Number], held: tuple[float, ...]) -> Number:
    """Compare squares of distances, less that of the row itself."""
    width = len(row)
    if len(held) > MOST_POINTS * width:
        raise NotAllowed(f"In an engine there are at most {MOST_POINTS} clusters. Ask for fewer, or fit an array.")
    scores = []
    for start, stop in pairwise(range(0, len(held) + 1, width)):
        point = held[start:stop]
        square = sum(one * one for one in point)
        scores.append(number(square) - _add([value * (2.0 * one) for value, one in zip(row, point, strict=True)]))
    least = scores[0] if len(scores) == 1 else Number("least", tuple(scores))
    return Number("place", (least, *scores))
