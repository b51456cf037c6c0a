"""A peer's side of an audit: public functions with what they claim, pairs of neighbours, and answers drawn on both.

Only the standard library is imported here, since nothing of ours is installed there: answers are drawn in the peer's
own environment, taking turns, and judged in ours. An error is an answer, and so is a warning that comes with one.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

ADD = "a row is added or removed"
REPLACE = "a row is replaced"
USER = "a user is added or removed"
INPUT = "the input moves by the sensitivity"
FEWEST = 128
"""Draws a side below which nothing can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One public function, called on two neighbouring inputs."""

    function: str
    about: str
    """What differs, in a few words."""
    ask: Callable[[Any], Any]
    x: Any
    y: Any
    epsilon: float = 1.0
    delta: float = 0.0
    relation: str = ADD
    remark: str = ""
    """What its documentation says about inputs like these."""
    draws: int = 10_000


def serve(cases: Iterable[Case]) -> None:
    """Draw all cases into the file that the second argument names, each for the seconds that the first one says."""
    seconds = float(sys.argv[1])
    with open(sys.argv[2], "a", encoding="utf-8") as out:
        for case in cases:
            on_x, on_y = drawn(case, seconds)
            line = {
                "function": case.function,
                "about": case.about,
                "epsilon": case.epsilon,
                "delta": case.delta,
                "relation": case.relation,
                "remark": case.remark,
                "x": on_x,
                "y": on_y,
            }
            out.write(json.dumps(line) + "\n")
            out.flush()


def drawn(case: Case, seconds: float) -> tuple[list[Any], list[Any]]:
    """Answers on both inputs, as many as asked for or as the time allows."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    begun = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while len(sides[0]) < case.draws:
            for value, side in zip((case.x, case.y), sides, strict=True):
                caught.clear()
                side.append(answered(case.ask, value, caught))
            if time.monotonic() - begun > seconds and len(sides[0]) >= FEWEST:
                break
    return sides


def answered(ask: Callable[[Any], Any], value: Any, caught: list[warnings.WarningMessage]) -> Any:
    """An answer in plain types, with the warnings that came with it."""
    try:
        answer = plain(ask(value))
    except Exception as error:
        return {"raised": type(error).__name__, "message": " ".join(str(error).split())[:80]}
    said = sorted({warning.category.__name__ for warning in caught})
    return {"answer": answer, "warned": said} if said else answer


def plain(value: Any) -> Any:
    """Numbers, texts, lists and mappings as JSON has them."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def table(rows: Iterable[Any]) -> Any:
    """Rows as an audit looks at them: one number as itself, rows of (key, number) by key."""
    kept = [list(row) for row in rows]
    if len(kept) == 1 and len(kept[0]) == 1:
        return kept[0][0]
    return {str(row[0]): row[-1] for row in kept} if kept else "no rows"


def in_a_child(ask: Callable[[Any], Any], value: Any) -> Any:
    """What a forked process answers."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(plain(ask(value))).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)
