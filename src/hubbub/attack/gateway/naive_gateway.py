"""A SQL gateway as one might write it in an afternoon: it counts with DuckDB, adds Laplace noise, and checks nothing.

Every answer has the noise of the textbook. It leaks all the same: an expression that fails tells about the row on which
it failed, one that takes long tells by taking long, nobody counts what was spent, and the noise is made of doubles.
It is here to be attacked; nobody who exists may ever be behind it.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hubbub.attack.made_up import MadeUp


class NaiveGateway:
    """Counting questions about made-up people, each answered with Laplace noise of scale 1/ε, as many as one likes."""

    def __init__(self, bits: Sequence[int], *, epsilon: float = 1.0, seed: int = 0) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute(
            "CREATE TABLE people AS SELECT i AS id, i AS code, bits[i + 1] AS ill, 'person ' || i AS name "
            f"FROM (SELECT {[int(bit) for bit in bits]} AS bits), range({len(bits)}) AS t(i)"
        )
        self._noise = MadeUp(seed, "gateway")
        self._scale = 1 / epsilon

    def ask(self, question: str) -> float:
        """The first number of the result, with noise. Errors of the engine reach whoever asks."""
        row = self._connection.execute(question).fetchone()
        return float(row[0] if row else 0) + float(self._noise.laplace(1, self._scale)[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()
