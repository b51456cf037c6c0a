"""The public names and their signatures are held in a file, so that a change of them is deliberate.

To renew the file after a change that is meant: ``python -m tests.test_public_surface``, and look at the difference.
"""

import dataclasses
import enum
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

STORED = Path(__file__).parent / "fixtures" / "public_surface.txt"
MODULES = ("hubbub", "hubbub.publish", "hubbub.learn", "hubbub.testing", "hubbub.audit", "hubbub.mechanisms")


def describe(name: str, value: Any) -> Iterator[str]:
    """Yield a line for a name, and for a class one for each public member."""
    if isinstance(value, ModuleType):
        yield f"{name}: module"
    elif inspect.isclass(value):
        yield f"class {name}{'' if issubclass(value, enum.Enum) else signature(value)}"
        yield from members(name, value)
    elif callable(value):
        yield f"{name}{signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def members(name: str, value: type) -> Iterator[str]:
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    ours = [base for base in reversed(value.__mro__) if base.__module__.startswith("hubbub")]
    for member, held in sorted({name: held for base in ours for name, held in vars(base).items()}.items()):
        if member.startswith("_") or member in fields or member == "plotter":  # set once hubbub.report is loaded
            continue
        plain = held.__func__ if isinstance(held, staticmethod | classmethod) else held
        if isinstance(held, property) or not callable(plain):
            yield f"    {name}.{member}"
        else:
            yield f"    {name}.{member}{signature(plain)}"


def signature(value: Any) -> str:
    """Return parameters with their defaults; annotations are what mypy holds."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    bare = [one.replace(default=_stable(one.default)) for one in bare]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


class _Written:
    """A default that is printed without an address."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _stable(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    return _Written(f"<{type(default).__name__}>" if " at 0x" in text or "factory" in text else text)


def surface() -> str:
    """List every public name of the public modules."""
    lines = []
    for module in MODULES:
        loaded = __import__(module, fromlist=["__all__"])
        lines.append(f"# {module}")
        for name in sorted(loaded.__all__):
            lines += describe(name, getattr(loaded, name))
        lines.append("")
    return "\n".join(lines)


def test_names_and_signatures_are_those_that_are_stored() -> None:
    found, stored = surface().splitlines(), STORED.read_text().splitlines()
    gone, new = sorted({*stored} - {*found}), sorted({*found} - {*stored})
    assert (gone, new) == ([], []), (
        "The public surface has changed. If that is meant, renew it with: python -m tests.test_public_surface"
    )


if __name__ == "__main__":
    STORED.write_text(surface())
    sys.stdout.write(f"Wrote {STORED}\n")
