"""Random maps with entries 0, 1 and -1, drawn before any data is seen, and public from then on."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise import entropy, uniform_below
from hubbub.parameters import whole
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.strategies.layer import Array, Shape, check_cells
from hubbub.publish.terms import Contribution

PRIME = (1 << 31) - 1
"""Places are hashed modulo this: products stay within 64 bits."""
MOST_CELLS = 1 << 30
MOST_SIGNS = 1 << 33
_EXACT = 1 << 53
_HASH = (1, 0, 0, 0, 0, 0)
"""The least value of each number of a hash: a cell's place must move with the cell."""
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """``rows`` tables of ``width``: in each, every cell is added to or taken from one number.

    Privacy:
        Claim: ``reach`` bounds how far neighbours are apart.
        Proof: a cell is in one number of each row with weight 1 or -1, so that columns have L1 norm ``rows``. In a row,
            a unit's share in a number is at most what it adds to the cells that share number and sign, or number and
            the other sign; the hashes are known, and ``pack`` takes the most cells that any number has of one sign.
        Needs: hashes drawn before the data is seen; bounds enforced on every unit before cells were counted.
        Ref: Charikar, Chen, Farach-Colton 2002.
    """

    shape: Shape
    rows: int
    width: int
    numbers: tuple[tuple[int, ...], ...]
    """Six of each row: a cell i goes to ((a·i + b) mod p) mod width, and the lowest bit of a cubic is its sign, so that
    the signs of any four cells are independent."""

    def __post_init__(self) -> None:
        fit = len(self.numbers) == self.rows and all(len(row) == len(_HASH) for row in self.numbers)
        if not fit or not all(least <= n < PRIME for row in self.numbers for n, least in zip(row, _HASH, strict=True)):
            raise ParameterError("hashes", f"six whole numbers below {PRIME} for each of {self.rows} rows", "others")

    @classmethod
    def draw(cls, shape: Shape, *, rows: int, width: int) -> "Hashed":
        """Fresh hashes."""
        whole("cells", int(np.prod(shape)), least=1, most=MOST_CELLS)
        numbers = tuple(tuple(least + uniform_below(PRIME - least) for least in _HASH) for _ in range(rows))
        return cls(shape=shape, rows=rows, width=width, numbers=numbers)

    @property
    def size(self) -> int:
        return self.rows * self.width

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape))

    def hashes(self) -> Iterator[tuple[Array, Array]]:
        """Of each row: the number and the sign of every cell."""
        at = np.arange(self.cells, dtype=np.int64)
        for a, b, *cubic in self.numbers:
            value = np.zeros_like(at)
            for coefficient in cubic:
                value = (value * at + coefficient) % PRIME
            yield (a * at + b) % PRIME % self.width, 1 - 2 * (value & 1)

    def apply(self, cells: Array) -> Array:
        flat = exact_row(check_cells(cells, self.shape))
        out = np.zeros((self.rows, self.width), dtype=flat.dtype)
        for row, (place, sign) in zip(out, self.hashes(), strict=True):
            np.add.at(row, place, sign * flat)
        return out.reshape(-1)

    def transpose(self, values: Array) -> Array:
        return np.asarray(self.spread(values).sum(axis=0)).reshape(self.shape)

    def spread(self, values: Array) -> Array:
        """Return the estimate of every cell by each row: (rows, cells)."""
        tables = np.asarray(values, dtype=float).reshape(self.rows, self.width)
        return np.stack([sign * table[place] for table, (place, sign) in zip(tables, self.hashes(), strict=True)])

    def reach(self, one: Contribution) -> Sensitivity:
        squares = 0
        for place, sign in self.hashes():
            load = np.bincount(2 * place + (sign > 0), minlength=2 * self.width)
            squares += one.pack(int(load.max()))
        return one.through(column_l1=self.rows, squares=squares, signed=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signs:
    """A matrix of independent fair signs, a bit each.

    Privacy:
        Claim: ``reach`` bounds how far neighbours are apart.
        Proof: all entries are 1 or -1: columns have L1 norm ``size``, and whatever a unit adds, no number moves by more
            than its total, so that L2² is at most size·total²; one cell attains both.
        Needs: signs drawn before the data is seen; bounds enforced on every unit before cells were counted.
        Ref: Achlioptas 2003; Kenthapadi, Korolova, Mironov, Mishra 2013.
    """

    shape: Shape
    size: int
    bits: Array
    """(size, ⌈cells/8⌉) bytes."""

    @classmethod
    def draw(cls, shape: Shape, *, size: int) -> "Signs":
        """Fresh signs."""
        cells = int(np.prod(shape))
        whole("size × cells", size * cells, least=1, most=MOST_SIGNS)
        wide = -(-cells // 8)
        source = entropy.begin("signs", size=size, cells=cells)
        words = entropy.words(source, -(-size * wide // 8))
        bits = words.view(np.uint8)[: size * wide].reshape(size, wide)
        bits.setflags(write=False)
        return cls(shape=shape, size=size, bits=bits)

    @classmethod
    def from_text(cls, shape: Shape, *, size: int, text: str) -> "Signs":
        """Those that ``text`` wrote."""
        wide = -(-int(np.prod(shape)) // 8)
        try:
            raw = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8).reshape(size, wide)
        except ValueError:
            raise ParameterError("signs", f"those of {size} sums over {shape} cells", "others") from None
        return cls(shape=shape, size=size, bits=raw)

    @property
    def text(self) -> str:
        """All signs, as JSON can hold them."""
        return base64.b64encode(self.bits.tobytes()).decode()

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Some rows at a time, as floats: sums of whole numbers below 2^53 are exact in them."""
        step = max(1, _BLOCK // self.cells)
        for start in range(0, self.size, step):
            rows = slice(start, min(start + step, self.size))
            yield rows, 1.0 - 2.0 * np.unpackbits(self.bits[rows], axis=1, count=self.cells)

    @property
    def matrix(self) -> Array:
        """All of it, where that fits."""
        return np.concatenate([part for _, part in self.blocks()])

    def apply(self, cells: Array) -> Array:
        flat = exact_row(check_cells(cells, self.shape))
        if flat.dtype == object or float(np.abs(flat).sum()) >= _EXACT:
            wide = flat.astype(object)
            return np.concatenate([part.astype(np.int64).astype(object) @ wide for _, part in self.blocks()])
        row = flat.astype(float)
        return np.concatenate([(part @ row).astype(np.int64) for _, part in self.blocks()])

    def transpose(self, values: Array) -> Array:
        found = np.zeros(self.cells)
        flat = np.asarray(values, dtype=float)
        for rows, part in self.blocks():
            found += flat[rows] @ part
        return found.reshape(self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        return one.through(column_l1=self.size, squares=self.size * one.total**2, signed=True)


def exact_row(cells: Array) -> Array:
    """Flat, in 64 bits where all sums of these numbers fit, else whole numbers of any size."""
    flat = cells.reshape(-1)
    if flat.dtype == object or float(np.abs(flat.astype(float)).sum()) >= 2.0**62:
        return flat.astype(object)
    return flat.astype(np.int64)
