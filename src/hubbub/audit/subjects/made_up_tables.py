"""Subjects that are asked about tables made up from a policy: how their neighbours are found, and made smaller."""

from collections.abc import Iterator
from dataclasses import replace

from hubbub.audit.chance import Chance
from hubbub.audit.subject import Pair
from hubbub.testing.made_up import Data, Part, Schema


class OfTables:
    """Databases that differ in the rows of one unit: the worst that are known first, then others."""

    _schema: Schema

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        """See audit.subject."""
        for pair in self._schema.pairs(chance):
            yield self._register(pair)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        """See audit.subject."""
        for _ in range(8):
            own = self._schema.changed(pair.x.mine, chance)
            if own is not None:
                made = replace(_change(pair, mine=own), about=f"near: {pair.about.removeprefix('near: ')}")
                return self._register(made)
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """See audit.subject."""
        if any(pair.x.others.values()) and any(len(rows) > 1 for rows in pair.x.mine.values()):
            nobody = dict.fromkeys(pair.x.others, ())
            for mine in self._schema.few(pair.x.mine):
                yield self._register(_change(pair, others=nobody, mine=mine))
        for way in (fewer, self._schema.simpler):
            for others in way(pair.x.others):
                yield self._register(_change(pair, others=others))
            for mine in way(pair.x.mine):
                yield self._register(_change(pair, mine=mine))
            for instead in way(pair.y.mine):
                yield self._register(_change(pair, instead=instead))

    def _register(self, pair: Pair) -> Pair:
        """Register the pair, where both sides must know each other."""
        return pair


def fewer(part: Part) -> Iterator[Part]:
    """Fewer rows: none, one half, every second one, then all but a few."""
    if not any(part.values()):
        return
    yield dict.fromkeys(part, ())
    for table, rows in part.items():
        sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128) if size <= len(rows)]
        for pieces in sizes[1:3]:
            step = -(-len(rows) // pieces)
            for at in range(pieces):
                yield {**part, table: rows[at * step : (at + 1) * step]}
                yield {**part, table: rows[at::pieces]}
        for pieces in dict.fromkeys([*sizes, min(len(rows), 24)]):
            step = -(-len(rows) // pieces) if rows else 1
            for at in range(0, len(rows), step):
                yield {**part, table: (*rows[:at], *rows[at + step :])}


def _change(pair: Pair, *, others: Part | None = None, mine: Part | None = None, instead: Part | None = None) -> Pair:
    rest = pair.x.others if others is None else others
    x = Data(others=rest, mine=pair.x.mine if mine is None else mine)
    y = Data(others=rest, mine=pair.y.mine if instead is None else instead)
    return Pair(x=x, y=y, about=pair.about)
