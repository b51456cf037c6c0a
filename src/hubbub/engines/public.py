"""What the engine reads of things that are public: before anything is paid, and in words that say no more than that."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hubbub.engines.duckdb import DuckDB
from hubbub.errors import EngineError, PolicyError
from hubbub.policy.tables import Source


@contextmanager
def before_the_charge(sentence: str) -> Iterator[None]:
    """Here the engine reads what is public, and nothing has been paid: its one error would say too much."""
    try:
        yield
    except EngineError:
        raise PolicyError(sentence) from None


def schema_of(engine: DuckDB, source: Source) -> Sequence[tuple[str, str]]:
    """The names and types that a source declares itself; no value is read for it."""
    place = source.paths[0] if source.paths else "the frame"
    with before_the_charge(f"The schema of {place} could not be read. Is it {source.format}, and readable?"):
        return engine.describe(source)
