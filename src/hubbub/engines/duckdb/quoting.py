"""Names, texts and readers of files in DuckDB's words, so that nothing that anybody says is read as SQL."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hubbub.errors import ParameterError


@lru_cache(maxsize=4096)
def quote_name(identifier: str) -> str:
    """Quote a name, whatever it holds."""
    if "\0" in identifier:
        raise ParameterError("name", "without NUL", identifier)
    return '"' + identifier.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Quote a text. NUL would end a statement early, so it is put together from its number."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError("text", "valid UTF-8", value) from None
    if "\0" not in value:
        return "'" + value.replace("'", "''") + "'"
    pieces: list[str] = []
    for index, piece in enumerate(value.split("\0")):
        pieces += ["chr(0)"] if index else []
        pieces += [quote_text(piece)] if piece else []
    return f"concat({', '.join(pieces)})"


def call_reader(reader: str, paths: Sequence[str], options: Mapping[str, str] | None = None) -> str:
    """Call a table function that reads files, given by their paths."""
    listed = "[" + ", ".join(map(quote_text, paths)) + "]"
    return f"{reader}({', '.join([listed, *(f'{key} = {value}' for key, value in (options or {}).items())])})"
