"""Plain tables for commands that take no policy: whole files, read as they are, for their owner."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hubbub.errors import HubbubError, ParameterError


def read_columns(path: Path, *, text: Sequence[str] | bool = ()) -> dict[str, list[Any]]:
    """The columns of a CSV or Parquet file. ``text`` names those that are no numbers (True: all), such as zip codes."""
    import duckdb

    if not path.is_file():
        raise ParameterError("FILE", "a CSV or Parquet file that is there", str(path))
    kept = () if isinstance(text, bool) else tuple(text)
    names = [f'"{one.replace(chr(34), chr(34) * 2)}"' for one in kept]
    if path.suffix.lower() in (".parquet", ".pq"):
        reader, values = "read_parquet(?)", [str(path)]
    else:
        reader = f"read_csv(?, header = true, all_varchar = {text is True}"
        reader += f", types = {{{', '.join(f'{name}: ?' for name in names)}}})" if names else ")"
        values = [str(path), *("VARCHAR" for _ in names)]
    shown = f"* REPLACE ({', '.join(f'CAST({name} AS VARCHAR) AS {name}' for name in names)})" if names else "*"
    try:
        with duckdb.connect() as engine:
            found = engine.execute(f"SELECT {shown} FROM {reader}", values)
            columns = [str(one[0]) for one in found.description or ()]
            rows = found.fetchall()
    except duckdb.Error as problem:
        raise HubbubError(f"{path} could not be read as a table: {str(problem).splitlines()[0]}") from problem
    return {column: [row[place] for row in rows] for place, column in enumerate(columns)}


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """To a new CSV file; text that a spreadsheet would run gets an apostrophe."""
    import csv

    if path.exists():
        raise ParameterError("--out", "a file that is not there yet", str(path))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def pairs(given: Sequence[str] | None, *, option: str) -> dict[str, str]:
    """From ``name=value``, given as often as needed."""
    found = {}
    for one in given or ():
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise ParameterError(option, "of the form column=value", one)
        found[name.strip()] = value.strip()
    return found
