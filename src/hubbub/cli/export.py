"""A ledger's entries in files that others read."""

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hubbub.cli.printing import plain
from hubbub.errors import HubbubError, ParameterError
from hubbub.ledger import Entry, Ledger
from hubbub.ledger.verify.recompute import sense_of
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT

GUARDED = "Text cells that begin like a formula (=, +, -, @) have an apostrophe in front: a spreadsheet would run them."

_FORMULA = tuple("=+-@＝＋－＠")
_TEXTS = ("account", "holder", "name", "principal", "project", "key", "question", "policy", "version")
_AMOUNTS = ("epsilon", "delta")
_COLUMNS = (
    *("entry", "time", "kind", *_TEXTS, *_AMOUNTS),
    *("loss", "failure", "period", "charge", "paid", "expires", "answer", "value", "hash"),
)


def export_entries(ledger: Ledger, form: str, out: Path | None) -> None:
    """Write all entries, one after the other, in one of the forms."""
    try:
        with _open_output(out) as file:
            _FORMS[form](ledger, file)
    except BrokenPipeError:
        raise  # whoever read has seen enough
    except OSError as problem:
        if isinstance(problem, HubbubError):
            raise
        raise HubbubError(f"The export is not complete: {problem.strerror}.") from problem


@contextmanager
def _open_output(out: Path | None) -> Iterator[IO[str]]:
    """A new file for its owner's eyes only: the answers are in it."""
    if out is None:
        yield sys.stdout
        return
    try:
        number = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise ParameterError("out", "a new file in a folder that can be written", str(out)) from problem
    with open(number, "w", encoding="utf-8", newline="") as file:
        yield file


def _json(ledger: Ledger, file: IO[str]) -> None:
    file.write(f'{{"ledger": {json.dumps(ledger.name)}, "entries": [\n')
    for place, entry in enumerate(ledger.entries()):
        file.write((",\n" if place else "") + json.dumps(_record(entry)))
    file.write("\n]}\n")


def _lines(ledger: Ledger, file: IO[str]) -> None:
    for entry in ledger.entries():
        file.write(json.dumps(_record(entry)) + "\n")


def _record(entry: Entry) -> dict[str, Any]:
    """With the very text that the hash covers."""
    with sense_of(entry):
        return {
            "seq": entry.seq,
            "time": entry.time,
            "moment": entry.moment.isoformat(),
            "kind": entry.kind,
            "content": entry.content,
            "body": entry.body,
            "hash": entry.hash,
        }


def _csv(ledger: Ledger, file: IO[str]) -> None:
    rows = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
    rows.writeheader()
    for entry in ledger.entries():
        with sense_of(entry):
            row = _row(entry, entry.content)
        rows.writerow(row)


def _row(entry: Entry, content: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: guard(str(content[name])) for name in _TEXTS if content.get(name) is not None}
    row |= {name: content[name] for name in ("period", "charge", "paid", "expires") if content.get(name) is not None}
    row |= {name: guard(str(content[name])) for name in _AMOUNTS if name in content}
    if "loss" in content:
        row["loss"] = float(content["loss"] * LOSS_UNIT)
        row["failure"] = float(content["failure"] * DELTA_UNIT)
    if "answer" in content:
        row["answer"] = guard(str(content["answer"]))
    if "value" in content:
        row["value"] = guard(json.dumps(content["value"]))
    return row | {
        "entry": entry.seq,
        "time": entry.moment.isoformat(),
        "kind": guard(entry.kind),
        "hash": guard(entry.hash),
    }


def guard(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and no terminal for a command."""
    clean = plain(text)
    return f"'{clean}" if clean.lstrip().startswith(_FORMULA) else clean


_FORMS = {"json": _json, "jsonl": _lines, "csv": _csv}
