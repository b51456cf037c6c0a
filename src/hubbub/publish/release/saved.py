"""A release in a file, and back: every noisy number that was drawn, exact and of a stated version.

Whole numbers are kept in the fewest bytes that hold all of them, compressed; those beyond 64 bits as decimal digits.

JSON holds the strategy, the domain, the price and the noisy numbers. Parquet holds the cells with their labels for
other programs, and the same JSON beside them. Nothing that is read is ever executed.
"""

import base64
import importlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.errors import HubbubError, MissingExtra, ParameterError
from hubbub.ledger.entry import digest_of, ratio
from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import ADDITIVE, Neighbors
from hubbub.publish import tags
from hubbub.publish.domain import Domain
from hubbub.publish.release.published import Published, Receipt
from hubbub.publish.sparse.prepared import PreparedSparse
from hubbub.publish.strategies.layer import Array
from hubbub.publish.strategies.strategy import Prepared
from hubbub.publish.terms import Contribution, Terms

VERSION = 1
_WHOLE = ("<i1", "<i2", "<i4", "<i8")
_REAL = "<f8"
_WIDE = "digits"
_MOST_BYTES = 1 << 32
_LARGE = 1 << 20


def pack(values: Any) -> dict[str, Any]:
    """An array, or a single number, as JSON can hold it."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        kind = next(one for one in _WHOLE if np.iinfo(one).min <= low and high <= np.iinfo(one).max)
        body = array.astype(kind).tobytes()
    elif array.dtype.kind == "f":
        kind, body = _REAL, array.astype(_REAL).tobytes()
    elif array.dtype in (object, np.uint64):
        kind, body = _WIDE, json.dumps([_exact(one) for one in array.reshape(-1)]).encode()
    else:
        raise ParameterError("values", "numbers", str(array.dtype))
    return {"kind": kind, "shape": list(array.shape), "data": base64.b64encode(_compress(body)).decode()}


def _compress(body: bytes) -> bytes:
    """Noise does not repeat itself: of large bodies only bytes are weighed by how often they come, which is as short as
    looking for repetitions, and some ten times faster."""
    if len(body) < _LARGE:
        return zlib.compress(body, 6)
    made = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return made.compress(body) + made.flush()


def _exact(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError("values", "whole numbers", value)
    return str(int(value))


def unpack(told: Any) -> Array:
    """The array that was packed; ParameterError for anything else."""
    match told:
        case {"kind": str(kind), "shape": [*shape], "data": str(data)} if all(
            type(length) is int and length >= 0 for length in shape
        ):
            pass
        case _:
            raise ParameterError("numbers", "packed by this version", type(told).__name__)
    try:
        opened = zlib.decompressobj()
        body = opened.decompress(base64.b64decode(data, validate=True), _MOST_BYTES)
        if opened.unconsumed_tail:
            raise ValueError("too long")
        if kind in {*_WHOLE, _REAL}:
            found = np.frombuffer(body, dtype=kind)
            return found.astype(np.float64 if kind == _REAL else np.int64).reshape(shape)
        if kind == _WIDE:
            digits = [int(one) for one in json.loads(body)]
            return np.array(digits, dtype=object).reshape(shape)
    except (ValueError, zlib.error, TypeError) as problem:
        raise ParameterError("numbers", "packed by this version", str(problem)) from None
    raise ParameterError("numbers", f"of one of the kinds {', '.join((*_WHOLE, _REAL, _WIDE))}", kind)


def all_packed(noisy: Sequence[Any]) -> list[dict[str, Any]]:
    """One after the other."""
    return [pack(one) for one in noisy]


def all_unpacked(told: Any) -> tuple[Array, ...]:
    """One after the other; a single number comes back as an array without dimensions."""
    if not isinstance(told, list):
        raise ParameterError("numbers", "a list", type(told).__name__)
    return tuple(unpack(one) for one in told)


FORMAT = "hubbub.published"
_KEY = b"hubbub.published"
_CERTIFICATE = b"hubbub.certificate"
_TEXTS = ("question", "policy", "version")
_UNITS = ("loss_units", "failure_units")


def save(published: Published, path: str | os.PathLike[str]) -> None:
    """By the name of the file: ``.parquet`` for other programs as well, anything else is JSON."""
    file = Path(path)
    told = json.dumps(to_json(published), ensure_ascii=False)
    if file.suffix.lower() != ".parquet":
        file.write_text(told + "\n", encoding="utf-8")
        return
    table = published.to_arrow()
    beside = {_KEY: told.encode(), _CERTIFICATE: published.certificate().encode()}
    _package("pyarrow.parquet").write_table(table.replace_schema_metadata(beside), file)


def load(path: str | os.PathLike[str]) -> Published:
    """Read a release that ``save`` has written, as JSON or Parquet."""
    file = Path(path)
    try:
        if file.suffix.lower() == ".parquet":
            text = (_package("pyarrow.parquet").read_schema(file).metadata or {}).get(_KEY, b"").decode()
        else:
            text = file.read_text(encoding="utf-8")
        told = json.loads(text)
    except OSError as problem:
        raise ParameterError("path", f"a file that can be read ({problem.strerror})", str(file)) from None
    except (ValueError, RecursionError) as problem:
        raise ParameterError("path", "a file that publish.save has written", str(file)) from problem
    return from_json(told)


def to_json(published: Published) -> dict[str, Any]:
    """All of it."""
    terms, paid = published.prepared.terms, published.receipt
    one = terms.contribution
    return {
        "format": FORMAT,
        "version": VERSION,
        "strategy": tags.to_json(tags.pin(published.strategy, published.prepared)),
        "domain": published.domain.to_json(),
        "terms": {
            "epsilon": ratio(terms.epsilon),
            "delta": ratio(terms.delta),
            "cells": one.cells,
            "each": one.each,
            "total": one.total,
            "neighbors": one.neighbors.value,
        },
        "events": events_name(published.events),
        "noisy": all_packed(published.noisy),
        "steps": list(published.steps),
        "made": None if published.made is None else pack(published.made),
        "account": published.account,
        "entry": published.entry,
        "receipt": None if paid is None else asdict(paid),
    }


def from_json(told: Any) -> Published:
    """The release that was written; ParameterError for anything else."""
    if not isinstance(told, Mapping) or told.get("format") != FORMAT or told.get("version") != VERSION:
        raise ParameterError("release", f"a {FORMAT} of version {VERSION}", type(told).__name__)
    try:
        strategy, domain = tags.from_json(told["strategy"]), Domain.from_json(told["domain"])
        prepared = strategy.prepare(domain.shape, _terms(told["terms"]))
        noisy = numbers(told["noisy"], told["events"], prepared)
        made = None if told["made"] is None else unpack(told["made"])
        if made is not None and made.shape != domain.shape:
            raise ParameterError("made", f"cells of shape {domain.shape}", made.shape)
        return Published(
            strategy=strategy,
            prepared=prepared,
            domain=domain,
            noisy=noisy,
            account=_of(told, "account", str),
            entry=_of(told, "entry", int),
            steps=tuple(str(one) for one in told["steps"]),
            made=made,
            receipt=_receipt(told["receipt"]),
        )
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, HubbubError):
            raise
        raise ParameterError("release", "written by publish.save", f"{type(problem).__name__}: {problem}") from None


def events_name(events: tuple[Event, ...]) -> str:
    """Return a short name for the mechanism that was drawn: numbers are read only by a strategy
    that still draws the same.
    """
    return digest_of([event.to_json() for event in events])


def numbers(told: Any, events: Any, prepared: Prepared) -> tuple[Any, ...]:
    """The noisy numbers of a prepared strategy, which must be the one that they were drawn for."""
    found = all_unpacked(told)
    measured = prepared.measurements
    if events != events_name(tuple(one.mechanism.event for one in measured)) or len(found) != len(measured):
        raise ParameterError(
            "release", "drawn as this version of Hubbub would draw it", "other noise: read it with the version of then"
        )
    for one, drawn in zip(measured, found, strict=True):
        if isinstance(prepared, PreparedSparse):  # which cells there are is part of the answer
            prepared.open(drawn)
        elif drawn.ndim and one.mechanism.needs.norm in ADDITIVE and drawn.size != one.layer.size:
            raise ParameterError("noisy numbers", f"{one.layer.size} for each layer", drawn.size)
    return tuple(drawn if drawn.ndim else drawn.item() for drawn in found)


def _terms(told: Mapping[str, Any]) -> Terms:
    one = Contribution(
        cells=told["cells"], each=told["each"], total=told["total"], neighbors=Neighbors(told["neighbors"])
    )
    return Terms(epsilon=Fraction(told["epsilon"]), delta=Fraction(told["delta"]), contribution=one)


def _receipt(told: Any) -> Receipt | None:
    if told is None:
        return None
    texts = {name: _of(told, name, str) for name in _TEXTS}
    charged = _of(told, "charged", str) if "charged" in told else ""  # those of before do not say it
    return Receipt(**texts, **{name: _of(told, name, int) for name in _UNITS}, charged=charged)


def _of(told: Mapping[str, Any], name: str, kind: type) -> Any:
    if type(told[name]) is not kind:
        raise ParameterError(name, f"of type {kind.__name__}", told[name])
    return told[name]


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(name.partition(".")[0], "arrow") from None
