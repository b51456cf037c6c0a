"""A ``hubbub.toml`` to start from, drafted from the names and types of columns. No value has been read for it.

Everything that only the owner can know is left as a comment: the unit first of all, then bounds and public keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.policy.build import Schema
from hubbub.policy.files.toml_text import header, key, text
from hubbub.policy.kinds import Kind, Type
from hubbub.policy.sources import UNTYPED
from hubbub.policy.types import Unusable, engine_kind

_HEAD = """\
# What Hubbub may tell about this data, and about whom. Written from the schema alone: no value has been looked at.
# Everything said here is public. Values outside declared bounds are clamped, so a wrong bound costs accuracy and never
# privacy; only the unit, and what is called public, are your word.

version = "1"                 # your name for the state of the data; a new one when the data changes
ledger = {ledger}

[budget]
account = {account}           # one for all tables about the same people
epsilon = 1                   # what all answers together may tell about one of them
delta = 0                     # above 0 (far below 1 / number of people): Gaussian noise too, where it errs less
neighbors = "add-remove"      # or "replace-one"

[limits]
max_groups = 1                # groups of one question in which a person counts; more groups, more noise
# max_rows = 10               # rows of a person that count in one group
# max_total_rows = 12         # rows of a person that count in all groups together: less noise than rows times groups
# buy = false                 # refuse questions that lack bounds or limits; else they buy them with a share of their ε
# lanes = 1                   # blocks of people on which a program runs at once; more are faster, and contend for cores
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """A table to write about."""

    name: str
    path: str
    """As it is to be written: relative to the policy, if it can be."""
    format: str
    schema: Schema
    table: str | None = None
    unit: str | None = None


def starter(drafts: Sequence[TableDraft], *, account: str = "people", ledger: str = "hubbub.ledger") -> str:
    """The text of a policy, which reads as soon as every table has its unit, or is called public."""
    head = _HEAD.format(ledger=text(ledger), account=text(account))
    return "\n".join([head, *(_table(draft) for draft in drafts)])


def _table(draft: TableDraft) -> str:
    lines = [header("tables", draft.name), f"path = {text(draft.path)}", f"format = {text(draft.format)}"]
    if draft.table is not None:
        lines.append(f"table = {text(draft.table)}")
    if draft.unit is not None:
        lines.append(f"unit = {text(draft.unit)}")
    else:
        lines.append('# unit = "…"                # the column that says whose a row is: the person, patient, device')
        lines.append("# public = true             # instead of a unit, if its rows may be shown to anybody")
    lines += ["# unique = true             # if a person has at most one row", ""]
    lines.append(header("tables", draft.name, "columns"))
    lines += [_column(draft, name, engine) for name, engine in draft.schema]
    return "\n".join(lines) + "\n"


def _column(draft: TableDraft, name: str, engine: str | None) -> str:
    unit = draft.unit is not None and draft.unit.lower() == name.lower()
    kind = None if engine is None or draft.format in UNTYPED else engine_kind(engine)
    match kind:
        case None if unit:
            return f'{key(name)} = {{ type = "text" }}   # the unit; text takes any identifier, integer is faster'
        case None:
            return f'# {key(name)} = {{ type = "…" }}   # integer, real, text, date, timestamp or boolean'
        case Unusable(reason=reason):
            return f"# {key(name)} {reason}: it cannot be used."
        case Kind() if unit:
            return f"# {key(name)} is the unit."
    return f"# {key(name)} = {{ {_hint(kind)} }}   # {kind}"


def _hint(kind: Kind) -> str:
    """Return an example of a declaration that a column of this kind needs; its numbers are made up."""
    match kind.type:
        case Type.INTEGER:
            return "bounds = [0, 100]"
        case Type.REAL:
            return "bounds = [0.0, 100.0]"
        case Type.BOOLEAN:
            return "keys = [false, true]"
        case Type.TEXT:
            return 'keys = ["…", "…"]'
        case Type.DATE:
            return "keys = [2024-01-01, 2024-01-02]"
    return "nullable = false"
