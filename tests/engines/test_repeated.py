"""Values that are there more than once, as the owner's side looks for them: by a bit each where the range is narrow."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb import engine as engine_module
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.policy.kinds import INT64, Kind, Type, integer, of
from hubbub.policy.tables import Table, TableColumn, TableSource

LOW, HIGH = INT64
CASES: dict[str, tuple[Kind, Sequence[Any], str]] = {
    "no two alike": (of(Type.INTEGER), [5, 3, None, None, 4, 9], "BIGINT"),
    "two and three alike": (of(Type.INTEGER), [5, 3, 3, None, 5, 5, 9], "BIGINT"),
    "the ends of a range are there twice": (of(Type.INTEGER), [-7, -7, 0, 12, 12], "BIGINT"),
    "one value": (of(Type.INTEGER), [LOW], "BIGINT"),
    "one value twice": (of(Type.INTEGER), [HIGH, HIGH], "BIGINT"),
    "as far apart as can be": (of(Type.INTEGER), [LOW, HIGH, 0], "BIGINT"),
    "as far apart as can be, and alike": (of(Type.INTEGER), [LOW, HIGH, 0, HIGH], "BIGINT"),
    "beyond the declared range": (integer(-2, 2), [-3, -3, 3, 3, 1, 2], "BIGINT"),
    "wide": (integer(-(1 << 100), 1 << 100), [1 << 90, 1 << 90, 1, 2], "HUGEINT"),
    "texts that are numbers": (of(Type.INTEGER), ["1", "01", "x", "x", "2"], "VARCHAR"),
    "texts": (of(Type.TEXT), ["1", "01", "1", "", None], "VARCHAR"),
    "missing alone": (of(Type.INTEGER), [None, None], "BIGINT"),
    "nothing": (of(Type.INTEGER), [], "BIGINT"),
}


def read(value: Any, kind: Kind) -> Any:
    """As the engine reads it; None where it is missing."""
    if value is None or kind.type is Type.TEXT:
        return value
    try:
        number = int(value)
    except ValueError:
        return None
    return number if kind.range[0] <= number <= kind.range[1] else None


@pytest.mark.parametrize("case", CASES)
def test_as_counted_in_python(engine: DuckDB, tmp_path: Path, case: str) -> None:
    kind, values, type_ = CASES[case]
    assert engine.count_repeated(*stored(tmp_path, kind, values, type_)) == more_than_once(values, kind)


@pytest.mark.parametrize("apart", [8, 9, 10])
def test_at_the_widest_range_that_has_bits(
    engine: DuckDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    """From 100 to 109, which is 9 apart: on both sides of the limit the same."""
    monkeypatch.setattr(engine_module, "_MOST_APART", apart)
    for values in ([100, 109, 104], [100, 109, 109]):
        found = engine.count_repeated(*stored(tmp_path, of(Type.INTEGER), values, "BIGINT"))
        assert found == more_than_once(values, of(Type.INTEGER))


def stored(folder: Path, kind: Kind, values: Sequence[Any], type_: str) -> tuple[Table, TableColumn]:
    """A file of them, and what is declared of it."""
    path = folder / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT CAST(unnest(?::VARCHAR[]) AS {type_}) AS v", [list(values)])
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    column = TableColumn(name="v", kind=kind)
    return Table(
        name="t", source=TableSource(format="parquet", paths=(str(path),)), columns=(column,), unit="v"
    ), column


def more_than_once(values: Sequence[Any], kind: Kind) -> int:
    counted = Counter(one for value in values if (one := read(value, kind)) is not None)
    return sum(many > 1 for many in counted.values())
