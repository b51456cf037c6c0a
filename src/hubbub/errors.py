"""Every error that Hubbub raises on purpose.

    HubbubError
    ├── ParameterError      invalid-parameter   an argument is not what the sentence says it must be
    ├── CapacityError       out-of-range        exact numbers would not fit where they have to go
    ├── EntropyError        no-entropy          the system gave no usable randomness
    ├── EventError          unknown-event       stored JSON that this version cannot read
    ├── AccountingError     no-bound            no proven bound covers these events together
    ├── SecretError         secret-sealed       someone tried to look into a Secret
    ├── MisfitError         mechanism-misfit    a mechanism does not fit what the plan proved
    ├── BudgetExceeded      budget-exceeded     the charge does not fit into what is left
    ├── UnknownAccount      unknown-account     nobody has opened that account
    ├── MissingExtra        missing-extra       an optional package is not installed
    └── ConformanceError    not-conforming      a mechanism is not what it claims to be

A message is one sentence (with a remedy where there is one), printed behind its stable code. The operands are kept
as attributes of ``operands``, so that programs need not parse sentences.
"""

from typing import Any, ClassVar


class HubbubError(Exception):
    """The root of the tree: catch this to catch everything that Hubbub raises on purpose."""

    code: ClassVar[str] = "hubbub"

    def __init__(self, message: str, /, **operands: Any) -> None:
        super().__init__(message)
        self.message = message
        self.operands = operands

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class ParameterError(HubbubError, ValueError):
    """An argument is not what it must be; nothing has been spent."""

    code = "invalid-parameter"

    def __init__(self, name: str, requirement: str, got: object) -> None:
        super().__init__(
            f"{name} must be {requirement}. Got {_short(got)} instead.", name=name, requirement=requirement, got=got
        )


class CapacityError(HubbubError, OverflowError):
    """Exact numbers would not fit where they have to go: refused rather than wrapped."""

    code = "out-of-range"


class EntropyError(HubbubError, RuntimeError):
    """The system gave no usable randomness: no noise can be drawn."""

    code = "no-entropy"


class EventError(HubbubError, ValueError):
    """Stored JSON names an event, or a version of one, that this version of Hubbub cannot read."""

    code = "unknown-event"


class AccountingError(HubbubError, ValueError):
    """No proven bound covers these events together."""

    code = "no-bound"


class SecretError(HubbubError, TypeError):
    """Someone tried to print, compare, copy, store or compute with a Secret outside the gate."""

    code = "secret-sealed"


class MisfitError(HubbubError, ValueError):
    """A mechanism does not fit what the plan proved about the Secret; nothing has been spent."""

    code = "mechanism-misfit"


class BudgetExceeded(HubbubError):
    """The charge does not fit into what is left; nothing has been spent."""

    code = "budget-exceeded"


class UnknownAccount(HubbubError, KeyError):
    """Nobody has opened an account of that name."""

    code = "unknown-account"


class MissingExtra(HubbubError, ImportError):
    """An optional package is not installed."""

    code = "missing-extra"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f'{package} is not installed. Run: pip install "hubbub[{extra}]"', package=package, extra=extra
        )


class ConformanceError(HubbubError, AssertionError):
    """A mechanism is not what it claims to be: the sentence says which check failed, and by how much."""

    code = "not-conforming"


def _short(value: object, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
