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
    ├── WatchOver           watch-over          a watch has found all that it was paid for
    ├── LedgerError         ledger              the ledger cannot vouch for a charge
    │   ├── LedgerUnreachable   ledger-unreachable  gone, moved, locked, or its disk or server fails
    │   ├── LedgerReadOnly      ledger-read-only    nothing can be written to it
    │   ├── LedgerFull          ledger-full         no room for another entry
    │   ├── LedgerCorrupt       ledger-corrupt      an entry or a balance is not what was written
    │   ├── LedgerRolledBack    ledger-rolled-back  older than what this machine has seen of it
    │   └── LedgerFormat        ledger-format       written by a newer version of Hubbub
    ├── GrantError          no-grant            this principal may not spend from the account
    │   ├── GrantExpired        grant-expired       the grant was good until a moment that has passed
    │   └── Frozen              frozen              the engine failed this principal too often after a charge
    ├── KeyConflict         key-conflict        the same key was used for another question
    ├── QueryError          query               a question that cannot be answered; where it has a place, with a caret
    │   ├── NotSql              not-sql             it could not be read at all
    │   ├── NotAllowed          not-allowed         something outside our SQL
    │   ├── UnknownName         unknown-name        no such table, column or function
    │   ├── TypeMisfit          type-mismatch       a function on arguments that it does not take
    │   ├── MayOverflow         may-overflow        whole numbers that could get too large
    │   ├── NotOwned            not-owned           rows that would not belong to exactly one unit
    │   ├── MissingBounds       missing-bounds      a column without declared bounds
    │   ├── MissingKeys         missing-keys        groups without a public list of keys
    │   └── TooHeavy            too-heavy           more work than the limits allow
    ├── EngineError         engine-failed       the engine could not answer, for whatever reason; the charge stands
    ├── DataChanged         data-changed        files were changed while they were read, and a checked fact fell with it
    ├── PolicyError         policy              the owner's declarations do not hold together
    ├── RecipeError         recipe              a recipe of what is to be published cannot be read
    ├── MissingExtra        missing-extra       an optional package is not installed
    └── ConformanceError    not-conforming      a mechanism is not what it claims to be

A message is one sentence (with a remedy where there is one), printed behind its stable code. The operands are kept
as attributes of ``operands``, so that programs need not parse sentences.
"""

from datetime import date, time
from enum import Enum
from fractions import Fraction
from itertools import islice
from pathlib import PurePath
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


class WatchOver(HubbubError):
    """A watch has given every answer above its threshold that it was paid for; nothing has been read."""

    code = "watch-over"


class LedgerError(HubbubError):
    """The ledger cannot vouch for a charge, so nothing is read. Every failure of a ledger is one of these."""

    code = "ledger"


class LedgerUnreachable(LedgerError, ConnectionError):
    """The ledger is gone, moved, locked for too long, or its disk or server fails."""

    code = "ledger-unreachable"


class LedgerReadOnly(LedgerError):
    """The ledger can be read but not written, so nothing can be paid."""

    code = "ledger-read-only"


class LedgerFull(LedgerError):
    """There is no room for another entry; what was to be written is not written."""

    code = "ledger-full"


class LedgerCorrupt(LedgerError):
    """An entry, a link of the chain or a balance is not what was written."""

    code = "ledger-corrupt"


class LedgerRolledBack(LedgerError):
    """The ledger is older than what this machine has seen of it: a restored backup would lend what was spent."""

    code = "ledger-rolled-back"


class LedgerFormat(LedgerError):
    """The ledger was written by a newer version of Hubbub, or is no ledger at all."""

    code = "ledger-format"


class GrantError(HubbubError, PermissionError):
    """This principal may not spend from the account."""

    code = "no-grant"


class GrantExpired(GrantError):
    """The grant was good until a moment that has passed."""

    code = "grant-expired"


class Frozen(GrantError):
    """The engine has failed this principal so often after a charge that its owner must look first."""

    code = "frozen"


class KeyConflict(HubbubError, ValueError):
    """The same idempotency key was used for another question; nothing has been spent."""

    code = "key-conflict"


class QueryError(HubbubError, ValueError):
    """A question that cannot be answered; nothing has been spent. What it says depends on question and policy alone."""

    code = "query"


class NotSql(QueryError):
    """The question could not be read at all."""

    code = "not-sql"


class NotAllowed(QueryError):
    """The question uses something that is outside our SQL."""

    code = "not-allowed"


class UnknownName(QueryError):
    """There is no such table, column or function."""

    code = "unknown-name"


class TypeMisfit(QueryError):
    """A function was given arguments that it does not take."""

    code = "type-mismatch"


class MayOverflow(QueryError):
    """Whole numbers could get larger than the engine can hold."""

    code = "may-overflow"


class NotOwned(QueryError):
    """Rows would reach an aggregate that do not belong to exactly one unit."""

    code = "not-owned"


class MissingBounds(QueryError):
    """A column is added up that has no declared bounds."""

    code = "missing-bounds"


class MissingKeys(QueryError):
    """Groups were asked for without a public list of their keys."""

    code = "missing-keys"


class TooHeavy(QueryError):
    """The question could take more work than the limits allow."""

    code = "too-heavy"


class EngineError(HubbubError, RuntimeError):
    """The engine could not answer. It says the same whatever went wrong, since that may depend on the data."""

    code = "engine-failed"

    def __init__(self) -> None:
        super().__init__("The engine could not answer. The charge stands; ask the owner.")


class DataChanged(HubbubError, RuntimeError):
    """Files were changed while a question was answered, by their time stamps alone; it counts as no failure."""

    code = "data-changed"


class ProgramError(HubbubError, RuntimeError):
    """A program for sample-and-aggregate cannot be loaded, or not be locked in; no row has been given to it."""

    code = "program"


class PolicyError(HubbubError, ValueError):
    """The owner's declarations do not hold together; the sentence names the place."""

    code = "policy"


class RecipeError(HubbubError, ValueError):
    """A recipe of what is to be published cannot be read; the sentence names the file, the line and the remedy."""

    code = "recipe"


class MissingExtra(HubbubError, ImportError):
    """An optional package is not installed."""

    code = "missing-extra"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f'{package} is not installed. Run: pip install "hubbub[{extra}]"', package=package, extra=extra
        )


class LearningWarning(UserWarning):
    """A fit is no better than chance, is paid for several times, or follows one that is not private."""


class ConformanceError(HubbubError, AssertionError):
    """A mechanism is not what it claims to be: the sentence says which check failed, and by how much."""

    code = "not-conforming"


def _short(value: object, limit: int = 80) -> str:
    text = _write(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _write(value: object, depth: int = 0) -> str:
    """Write a value as its user would; of an object, its kind alone: a frame's own words would be its rows."""
    if value is None:
        return "nothing"
    if isinstance(value, Enum):
        return _write(value.value)
    if isinstance(value, Fraction | int) and max(abs(value.numerator), value.denominator) >= _LONG:
        return "a number of more digits than are shown"
    plain: Any
    for plain in (bool, int, float, complex, str, bytes):
        if isinstance(value, plain):
            return repr(plain(value))  # what NumPy derives from them calls itself np.float64(…)
    if isinstance(value, Fraction) and type(value) is not Fraction:
        return repr(value)  # a policy's number, as it was written
    if isinstance(value, Fraction | PurePath | date | time):
        return str(value)
    if type(value).__module__.startswith("hubbub.privacy") and type(value).__str__ is not object.__str__:
        return str(value)  # a loss: ε = 1
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if type(value) in _BRACKETS:
        return _write_items(value, depth + 1) if depth < _DEEPEST else "…"
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _write(value.item(), depth + 1) if depth < _DEEPEST else "…"  # type: ignore[attr-defined]
    name = getattr(value, "__name__", None)
    if callable(value) and isinstance(name, str):
        return f"the function {name}"
    name = {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)
    return f"a{'n' if name[:1] in 'AEIOUaeiou' else ''} {name}"


_BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    **dict.fromkeys((set, frozenset, dict), ("{", "}")),
}
_MOST_WRITTEN = 81
"""Items of a collection that are written: each is a letter at least, and no more letters are shown."""
_DEEPEST = 4
_LONG = 10**80


def _write_items(value: Any, depth: int) -> str:
    first, last = _BRACKETS[type(value)]
    items = list(islice(value.items() if isinstance(value, dict) else value, _MOST_WRITTEN))
    if isinstance(value, dict):
        written = [f"{_write(key, depth)}: {_write(held, depth)}" for key, held in items]
    else:
        written = [_write(item, depth) for item in items]
    only = "," if isinstance(value, tuple) and len(written) == 1 else ""
    return f"{first}{', '.join(written)}{only}{last}"
