"""A sparse release in a file, and back: all that was drawn, so that the loaded release answers as the saved one."""

import json
import os
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import HubbubError, ParameterError
from hubbub.ledger.entry import ratio
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import tags
from hubbub.publish.release import saved as stored
from hubbub.publish.release.published import Receipt
from hubbub.publish.sparse.keys import Keys, axis_from_json, axis_to_json
from hubbub.publish.terms import Contribution, Terms

if TYPE_CHECKING:
    from hubbub.publish.sparse.release import SparseRelease

FORMAT = "hubbub.sparse"


def save(release: "SparseRelease", path: str | os.PathLike[str]) -> None:
    """As JSON."""
    Path(path).write_text(json.dumps(to_json(release), ensure_ascii=False) + "\n", encoding="utf-8")


def to_json(release: "SparseRelease") -> dict[str, Any]:
    """All of it."""
    one = release.terms.contribution
    return {
        "format": FORMAT,
        "version": stored.VERSION,
        "axes": [axis_to_json(name, labels) for name, labels in release.keys.axes],
        "strategy": tags.to_json(release.strategy),
        "terms": {
            "epsilon": ratio(release.epsilon),
            "delta": ratio(release.delta),
            "cells": one.cells,
            "each": one.each,
            "total": one.total,
            "neighbors": one.neighbors.value,
        },
        "codes": stored.pack(release.codes),
        "values": stored.pack(release.values),
        "noisy": stored.pack(release.noisy),
        "grid": ratio(release.grid),
        "level": release.level,
        "hidden": release.hidden,
        "account": release.account,
        "entry": release.entry,
        "receipt": None if release.receipt is None else asdict(release.receipt),
    }


def load(path: str | os.PathLike[str]) -> "SparseRelease":
    """Read a release that ``save`` has written."""
    from hubbub.publish.sparse.release import SparseRelease

    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        if told["format"] != FORMAT or told["version"] != stored.VERSION:
            raise ValueError("another format")
        terms, paid = dict(told["terms"]), told["receipt"]
        price = {name: Fraction(terms.pop(name)) for name in ("epsilon", "delta")}
        one = Contribution(**{**terms, "neighbors": Neighbors(terms["neighbors"])})
        return SparseRelease(
            keys=Keys(axes=tuple(axis_from_json(one) for one in told["axes"])),
            codes=stored.unpack(told["codes"]),
            values=stored.unpack(told["values"]),
            noisy=stored.unpack(told["noisy"]),
            grid=Fraction(told["grid"]),
            strategy=tags.from_json(told["strategy"]),  # type: ignore[arg-type]
            terms=Terms(contribution=one, **price),
            level=told["level"],
            hidden=told["hidden"],
            account=str(told["account"]),
            entry=int(told["entry"]),
            receipt=None if paid is None else Receipt(**paid),
        )
    except OSError as problem:
        raise ParameterError("path", f"a file that can be read ({problem.strerror})", str(path)) from None
    except (ValueError, KeyError, TypeError, HubbubError) as problem:
        raise ParameterError("path", "a file that a sparse release has written", str(path)) from problem
