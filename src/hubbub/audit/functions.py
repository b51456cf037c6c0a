"""Your own function as a subject: rows in, anything out, and a claim about one row more or less (or another one).

    report = examine(OfFunction(noisy_mean, claim=Claim.pure(1.0), rows=[[0.0, 1.0], [float("nan")]]))

Inputs are lists of rows made up from the values that the rows given hold; the worst known come first: nothing at all,
one row, many alike, one row unlike all others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs, Raised
from hubbub.audit.subject import Claim, Pair
from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Neighbors

_MANY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The function that is audited, and the inputs on which it may be asked."""

    function: Callable[[list[Any]], Any]
    claim: Claim
    rows: tuple[Any, ...]
    neighbors: Neighbors
    name: str


class OfFunction:
    """A function of a list of rows, with the (ε, δ) that it claims. ``rows`` are rows that may occur: odd ones too."""

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        *,
        claim: Claim,
        rows: Sequence[Any],
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        name: str | None = None,
    ) -> None:
        if not callable(function):
            raise ParameterError("function", "one that is called with a list of rows", function)
        if not rows:
            raise ParameterError("rows", "at least one row that may occur", rows)
        called = name or str(getattr(function, "__name__", "function"))
        self._held = _Held(function=function, claim=claim, rows=tuple(rows), neighbors=neighbors, name=called)

    @property
    def name(self) -> str:
        return self._held.name

    @property
    def claim(self) -> Claim:
        return self._held.claim

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        rows = self._held.rows
        bases: list[list[Any]] = [[], *([row] * _MANY for row in rows), *([row] for row in rows)]
        for base, row in product(bases, rows):
            yield self._pair(base, row, chance)
        for _ in count():
            base = [chance.choice(rows) for _ in range(chance.between(0, 3 * _MANY))]
            yield self._pair(base, chance.choice(rows), chance)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        base, rows = list(pair.x), self._held.rows
        own = pair.y[-1]
        if self._held.neighbors is Neighbors.REPLACE_ONE:
            base = base[:-1]
        if base and chance.one_in(2):
            base.pop(chance.below(len(base)))
        else:
            base.append(chance.choice(rows))
        return self._pair(base, own, chance)

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        kept = 1 if self._held.neighbors is Neighbors.REPLACE_ONE else 0
        for place in range(len(pair.x) - kept):
            x, y = (side[:place] + side[place + 1 :] for side in (pair.x, pair.y))
            yield Pair(x=x, y=y, about=_about(x, y))

    def faults(self, pair: Pair) -> list[str]:
        """List no faults: only counting shows them, since the inside is not known."""
        return []

    def answers(self, value: list[Any], *, times: int) -> Outputs:
        return [self._answer(list(value)) for _ in range(times)]

    def show_pair(self, pair: Pair) -> str:
        return f"x = {pair.x!r}\ny = {pair.y!r}"

    def _answer(self, rows: list[Any]) -> Any:
        try:
            return self._held.function(rows)
        except Exception as error:
            return Raised(type(error).__name__, str(error))

    def _pair(self, base: list[Any], row: Any, chance: Chance) -> Pair:
        if self._held.neighbors is Neighbors.REPLACE_ONE:
            x, y = [*base, chance.choice(self._held.rows)], [*base, row]
        else:
            x, y = list(base), [*base, row]
        return Pair(x=x, y=y, about=_about(x, y))


def _about(x: list[Any], y: list[Any]) -> str:
    return f"{len(x)} rows and one more" if len(y) > len(x) else f"{len(x)} rows, the last one another"
