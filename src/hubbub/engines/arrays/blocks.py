"""Evaluate Numbers on a block of rows: a single number as one array, those side by side as the rows of another.

So one operation runs over many rows of one column, whatever the table's shape is; results are written over arguments
that nobody needs any more.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.query.totals import Number

Array = np.ndarray[Any, Any]


class Block:
    """Some rows of tables that stand side by side, and room for what is computed of them, kept from block to block."""

    def __init__(self, tables: Sequence[Array], weights: Array | None, room: dict[Hashable, Array]) -> None:
        self.tables, self.weights, self.rows = tables, weights, len(tables[0])
        self.complete: list[Array] = []
        """Columns of which no value is missing."""
        self._room = room

    def room(self, name: Hashable, width: int | None) -> Array:
        """Return an array to write to; memory that was just used is the fastest."""
        held = self._room.get(name)
        if held is None or held.shape[-1] < self.rows:
            held = self._room[name] = np.empty((self.rows,) if width is None else (width, self.rows))
        return held[..., : self.rows]


class BlockProgram:
    """The operations of some Numbers in an order in which they can be computed."""

    def __init__(self, wanted: Sequence[Number]) -> None:
        places: dict[int, int] = {}
        self._numbers: list[Number] = []
        self._room: dict[Hashable, Array] = {}

        def place(one: Number) -> int:
            if id(one) not in places:
                for argument in one.arguments:
                    place(argument)
                places[id(one)] = len(self._numbers)
                self._numbers.append(one)
            return places[id(one)]

        self._wanted, self._wanted_numbers = [place(one) for one in wanted], list(wanted)
        self._start = [_constant(one) for one in self._numbers]
        self._arguments = [[places[id(argument)] for argument in one.arguments] for one in self._numbers]
        steps = list(enumerate(self._arguments))
        last = {used: at for at, given in steps for used in given}
        kept = {*self._wanted, *(given[0] for at, given in steps if self._numbers[at].function in _VIEWS)}
        self._ends = [{used for used in given if last[used] == at and used not in kept} for at, given in steps]
        self._homes: dict[int, tuple[Number, slice]] = {}
        """Where a result belongs that is only put beside others afterwards."""
        for at, given in steps:
            stop = 0
            for used in given if self._numbers[at].function == "beside" else ():
                start, stop = stop, stop + (self._numbers[used].width or 1)
                if last[used] == at and used not in kept and self._numbers[used].width is not None:
                    self._homes.setdefault(used, (self._numbers[at], slice(start, stop)))

    def run(self, tables: Sequence[Array], weights: Array | None) -> list[Array]:
        """Return what was wanted of these rows, until it runs again."""
        block = Block(tables, weights, self._room)
        values = list(self._start)
        own: set[int] = set()
        for at, one in enumerate(self._numbers):
            if values[at] is not None:
                continue
            given = [values[used] for used in self._arguments[at]]
            work = _UFUNCS.get(one.function)
            if work is None:
                values[at] = _MEANINGS[one.function](one, given, block)
                if one.function not in _BORROWED and values[at].dtype == np.float64:
                    own.add(at)
            else:
                home = self._homes.get(at)
                if home is not None:
                    out = block.room(id(home[0]), home[0].width)[home[1]]
                else:
                    shape = (block.rows,) if one.width is None else (one.width, block.rows)
                    free = [used for used in self._ends[at] if used in own and values[used].shape == shape]
                    out = values[free[0]] if free else block.room(at, one.width)
                    own.add(at)
                values[at] = work(*given, *one.constants, out=out)
        shapes = [(block.rows,) if one.width is None else (one.width, block.rows) for one in self._wanted_numbers]
        return [
            values[at] if values[at].shape == shape else np.broadcast_to(values[at], shape)
            for at, shape in zip(self._wanted, shapes, strict=True)
        ]


def shorten(rows: Array, most: float, weights: Array | None, *, out: Array, room: Array) -> Array:
    """Write whole numbers of squared length at most weight·most², of vectors that stand in columns (``Number``)."""
    scale = most / np.maximum(np.sqrt(_add_rows(np.multiply(rows, rows, out=room))), 1.0)
    if weights is not None:
        scale *= np.sqrt(weights)
    np.multiply(rows, scale, out=out)
    np.trunc(out, out=out)
    # Rounding of roots and quotients can leave a row that was shortened one step too long: one less is enough.
    squared = _add_rows(np.multiply(out, out, out=room))
    beyond = np.flatnonzero(squared > (most * most if weights is None else most * most * weights))
    if len(beyond):
        out[:, beyond] -= np.sign(out[:, beyond])
    return out


def _add_rows(block: Array) -> Array:
    """Add one after the other: NumPy's own sums have another order where a block has a single column."""
    total = np.array(block[0])
    for row in block[1:]:
        total += row
    return total


def _constant(one: Number) -> Any:
    match one.function:
        case "constant":
            return np.float64(one.constants[0])
        case "constants":
            return np.array(one.constants)[:, None]
    return None


def _columns(one: Number, _: Any, block: Block) -> Array:
    """Return columns of one table as they are, and those of several copied."""
    first, last = int(one.constants[0]), int(one.constants[0]) + (one.width or 1)
    parts, start = [], 0
    for table in block.tables:
        ends = max(first - start, 0), min(last - start, table.shape[1])
        if ends[0] < ends[1]:
            parts.append(table[:, slice(*ends)].T)
        start += table.shape[1]
    found = parts[0] if len(parts) == 1 else np.concatenate(parts, out=block.room(id(one), one.width))
    found = found[0] if one.width is None else found
    if np.isfinite(np.einsum("i->" if one.width is None else "ij->", found)):  # half the time of found.sum()
        block.complete.append(found)
        return found
    return np.where(np.isfinite(found), found, np.nan)


def _fill(value: Any, by: Any, otherwise: Any, block: Block) -> Any:
    """Put a constant where another number is missing."""
    if any(by is one for one in block.complete) or not np.isnan(by.sum()):
        return value
    return np.where(np.isnan(by), otherwise, value)


def _beside(one: Number, given: list[Any], block: Block) -> Array:
    out = block.room(id(one), one.width)
    start = 0
    for part, value in zip(one.arguments, given, strict=True):
        stop = start + (part.width or 1)
        if not np.may_share_memory(out, value):
            out[start:stop] = value
        start = stop
    return out


def _part(one: Number, given: list[Any], *_: Any) -> Any:
    start, stop = (int(end) for end in one.constants)
    return given[0][start] if one.width is None else given[0][start:stop]


def _pick(one: Number, given: list[Any], *_: Any) -> Array:
    """Take entries of one list, or of a list for each of the numbers side by side."""
    entries, places = np.array(one.constants), given[0].astype(np.intp)
    return np.asarray(
        entries.reshape(one.width, -1).take(places, axis=1) if one.width and places.ndim == 1 else entries[places]
    )


def _nearest(one: Number, given: list[Any], *_: Any) -> Array:
    points = np.array(one.constants).reshape(-1, len(given[0]))
    return np.asarray(((points * points).sum(axis=1) - 2.0 * (given[0].T @ points.T)).argmin(axis=1))


def _exponent(one: Number, given: list[Any], *_: Any) -> Array:
    fraction, exponent = np.frexp(given[0])
    least, most = one.constants
    return np.where(np.abs(fraction) > 0, np.clip(exponent, int(least), int(most)), least)


def _shorten(one: Number, given: list[Any], block: Block) -> Array:
    out, room = (block.room((id(one), place), one.width) for place in range(2))
    return shorten(given[0], one.constants[0], given[1] if len(given) > 1 else None, out=out, room=room)


def _place(_: Number, given: list[Any], block: Block) -> Array:
    met, *among = (np.broadcast_to(one, block.rows) for one in given)
    return np.asarray(np.argmax(np.stack(among) == met, axis=0))


def _single(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of two numbers take any number of them."""
    return lambda *given, out: _folded(work, given, out)


def _folded(work: Callable[..., Any], given: Sequence[Any], out: Array) -> Array:
    if len(given) == 1:
        out[...] = given[0]
        return out
    found = work(given[0], given[1], out=out)
    for more in given[2:]:
        found = work(found, more, out=out)
    return np.asarray(found)


_UFUNCS: Mapping[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "least": _single(np.minimum),
    "greatest": _single(np.maximum), "truncate": np.trunc, "floor": np.floor, "sqrt": np.sqrt, "log2": np.log2,
    "asinh": np.arcsinh, "sign": np.sign, "above": np.greater, "equal": np.equal,
    "clip": np.clip,
}  # fmt: skip
_MEANINGS: Mapping[str, Callable[[Number, list[Any], Block], Any]] = {
    "column": _columns,
    "columns": _columns,
    "weight": lambda _, __, block: np.float64(1.0) if block.weights is None else block.weights,
    "known": lambda _, given, block: _fill(given[0], given[0], given[1], block),
    "pick": _pick,
    "place": _place,
    "beside": _beside,
    "part": _part,
    "added": lambda _, given, *__: _add_rows(given[0]),
    "known_by": lambda one, given, block: _fill(given[0], given[1], one.constants[0], block),
    "exponent": _exponent,
    "shorten": _shorten,
    "nearest": _nearest,
    "project": lambda one, given, *_: np.array(one.constants).reshape(-1, one.width or 0).T @ given[0],
}
_VIEWS = frozenset({"part", "known", "known_by"})
"""What may be its argument, or a part of it."""
_BORROWED = _VIEWS | {"column", "columns", "weight"}
"""What is nobody's to write over."""
