"""Strategies as data: a name and the fields that differ from their defaults, and back again.

The names are those that ``hubbub.publish`` shows. What is read is checked field by field against the declared types;
nothing that was stored names a module, and nothing of it is run.
"""

import dataclasses
import importlib
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from hubbub.errors import ParameterError
from hubbub.ledger.entry import canonical, digest_of, ratio
from hubbub.parameters import rational
from hubbub.publish.release.saved import pack, unpack
from hubbub.publish.strategies.strategy import Prepared, Strategy

TAG = "is"
_MOST_TOLD = 10_000
"""Characters of a strategy that a certificate holds."""


@cache
def classes_by_name() -> dict[str, type]:
    """Every public dataclass of ``hubbub.publish``, its maps and its sparse domains, by its name in lower case."""
    homes = [importlib.import_module(f"hubbub.publish{part}") for part in ("", ".spatial", ".sparse")]
    found = [getattr(home, name) for home in homes for name in home.__all__]
    return {one.__name__.lower(): one for one in found if isinstance(one, type) and dataclasses.is_dataclass(one)}


def strategies() -> dict[str, type]:
    """Those of them that can be published with."""
    return {name: one for name, one in classes_by_name().items() if hasattr(one, "prepare")}


def to_json(value: Any) -> Any:
    """A strategy, or any part of one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if classes_by_name().get(type(value).__name__.lower()) is not type(value):
            raise ParameterError("strategy", "made of what hubbub.publish shows", type(value).__name__)
        told = {
            field.name: to_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if _said(value, field)
        }
        return {TAG: type(value).__name__} | told
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return {"ratio": ratio(value)}
    if isinstance(value, np.ndarray):
        return {"array": pack(value)}
    if isinstance(value, range):
        return [value.start, value.stop, value.step]
    if isinstance(value, tuple | list):
        return [to_json(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ParameterError("strategy", "made of numbers, texts, lists and other strategies", value)


def pin(strategy: Strategy, prepared: Prepared) -> Strategy:
    """With what was drawn or searched for when it was prepared, so that it can be prepared once more."""
    pin = getattr(strategy, "pin", None)
    found: Strategy = strategy if pin is None else pin(prepared)
    return found


def describe(strategy: Strategy, prepared: Prepared) -> Any:
    """All of a pinned strategy for a certificate, or a name for it where it is long."""
    whole = to_json(pin(strategy, prepared))
    if len(canonical(whole)) <= _MOST_TOLD:
        return whole
    return {TAG: whole[TAG], "sha256": digest_of(whole)}


def _said(value: Any, field: "dataclasses.Field[Any]") -> bool:
    """Return True if a field is a parameter, and differs from its default."""
    if not field.init:
        return False
    if field.default is not dataclasses.MISSING:
        default = field.default
    elif field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    else:
        return True
    held = getattr(value, field.name)
    if isinstance(held, np.ndarray) or isinstance(default, np.ndarray):
        return not np.array_equal(held, default)
    return bool(held != default)


def from_json(told: Any, *, what: str = "strategy") -> Strategy:
    """The strategy that was written."""
    made = _make(told, what)
    if type(made) not in strategies().values():
        raise ParameterError(what, f"one of {', '.join(sorted(strategies()))}", told)
    return made  # type: ignore[no-any-return]


def _make(told: Any, what: str) -> Any:
    if not isinstance(told, Mapping) or not isinstance(told.get(TAG), str):
        raise ParameterError(what, "the name of a strategy with its parameters", told)
    kind = classes_by_name().get(told[TAG].lower().replace("-", "").replace("_", ""))
    if kind is None:
        raise ParameterError(what, f"one of {', '.join(sorted(strategies()))}", told[TAG])
    hints, known = get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind) if field.init}
    given = {name: value for name, value in told.items() if name != TAG}
    for name, value in given.items():
        if name not in known or name == "name":
            can = ", ".join(one for one in known if one != "name") or "nothing"
            raise ParameterError(f"{name} of {told[TAG]}", f"left out: it takes {can}", value)
    fields = {name: _read(value, hints[name], f"{name} of {told[TAG]}") for name, value in given.items()}
    missing = [
        name
        for name, field in known.items()
        if name not in fields and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ParameterError(f"{missing[0]} of {told[TAG]}", "given", None)
    return kind(**fields)


def _read(told: Any, hint: Any, what: str) -> Any:
    """A value of the declared type, or a complaint."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first(told, parts, what)
    if origin is Literal:
        if told in parts and type(told) in {type(one) for one in parts}:
            return told
        raise ParameterError(what, f"one of {', '.join(map(str, parts))}", told)
    if hint is None or hint is type(None):
        if told is None:
            return None
        raise ParameterError(what, "left out", told)
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _make_list(told, origin, parts, what)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(told, Mapping):
            raise ParameterError(what, "a table", told)
        return {str(name): _read(one, parts[1], what) for name, one in told.items()}
    if isinstance(told, Mapping):
        return _make_tagged(told, what)
    return _plain(told, hint, what)


def _first(told: Any, hints: Sequence[Any], what: str) -> Any:
    problem: ParameterError | None = None
    for hint in hints:
        try:
            return _read(told, hint, what)
        except ParameterError as found:
            problem = problem or found
    assert problem is not None
    raise problem


def _make_list(told: Any, origin: Any, parts: Sequence[Any], what: str) -> Any:
    if not isinstance(told, list | tuple):
        raise ParameterError(what, "a list", told)
    if origin is tuple and parts and Ellipsis not in parts:
        if len(parts) != len(told):
            raise ParameterError(what, f"a list of {len(parts)}", told)
        return tuple(_read(one, hint, what) for one, hint in zip(told, parts, strict=True))
    made = [_read(one, parts[0] if parts else Any, what) for one in told]
    return made if origin is list else tuple(made)


def _make_tagged(told: Mapping[str, Any], what: str) -> Any:
    match told:
        case {"ratio": str(text)}:
            try:
                return Fraction(text)
            except (ValueError, ZeroDivisionError):
                raise ParameterError(what, "a ratio such as 1/3", text) from None
        case {"array": numbers}:
            return unpack(numbers)
    return _make(told, what)


def _plain(told: Any, hint: Any, what: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(told)
        except ValueError:
            raise ParameterError(what, f"one of {', '.join(str(one.value) for one in hint)}", told) from None
    if hint is Any:
        return told
    if hint is Fraction:
        return rational(what, told)
    if hint is float and isinstance(told, int | float | Fraction) and not isinstance(told, bool):
        return float(told)
    if isinstance(hint, type) and type(told) is hint:
        return told
    wanted = "a whole number" if hint is int else getattr(hint, "__name__", str(hint))
    raise ParameterError(what, f"of another kind: {wanted}", told)
