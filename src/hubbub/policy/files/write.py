"""A ``hubbub.toml`` to start from, drafted from the names and types of columns.

Everything that only the owner can know is left as a comment: the unit first of all, then bounds and public keys. What
was guessed, types of text and paths to the unit, is a comment until the owner confirms it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.policy.build import Schema
from hubbub.policy.files.toml_text import header, text
from hubbub.policy.files.toml_text import key as key_of
from hubbub.policy.kinds import Kind, Type, of
from hubbub.policy.paths import PathStep
from hubbub.policy.shared_keys import write_step
from hubbub.policy.sources import UNTYPED
from hubbub.policy.types import Unusable, engine_kind

_HEAD = """\
# What Hubbub may tell about this data, and about whom. It was drafted from the schema; types of text files were guessed
# from their values. Everything said here is public: read it before you pass it on. Values outside declared bounds are
# clamped, so a wrong bound costs accuracy and never privacy; only the unit, and what is called public, are your word.

version = "1"                 # your name for the state of the data; a new one when the data changes
ledger = {ledger}

[budget]
account = {account}           # one for all tables about the same people
epsilon = 1                   # what all answers together may tell about one of them
delta = 0                     # above 0 (far below 1 / number of people): Gaussian noise too, where it errs less
neighbors = "add-remove"      # or "replace-one"

[limits]
# What a person adds beyond a limit is dropped, and intervals are about what is left. Where max_total_rows is said, they
# cover what is dropped of people who have no more rows than that. Limits (and bounds) that are not said are bought: a
# question finds good ones itself, with a share of its ε, once. Say those that you know; hubbub advise proposes them.
# max_groups = 4              # groups of one question in which a person counts; more groups, more noise
# max_rows = 10               # rows of a person that count in one group
# max_total_rows = 40         # rows that a person has at most: no more count in all groups, and intervals cover so many
# buy = false                 # refuse questions that lack bounds or limits, in place of buying them
# lanes = 1                   # blocks of people on which a program runs at once; more are faster, and contend for cores
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnConstraints:
    """What constraints and types say of a column."""

    is_required: bool = False
    is_unique: bool = False
    labels: tuple[str, ...] = ()


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
    steps: tuple[PathStep, ...] = ()
    """Paths to the unit that it could have, by the names of columns."""
    types: Mapping[str, Type | None] = field(default_factory=dict)
    """Guesses for the columns of a text file; None for one without a value."""
    has_types: bool = False
    """Whether the owner has confirmed the types: they are comments otherwise."""
    has_path: bool = False
    """Whether the owner has confirmed the first of the steps."""
    schema_name: str | None = None
    """The schema of a server's table."""
    facts: Mapping[str, ColumnConstraints] = field(default_factory=dict)
    """What a server's catalogue says of columns."""
    foreign: tuple[PathStep, ...] | None = None
    """The foreign keys of a server's table to other drafted tables."""
    unit_keys: tuple[str, ...] = ()
    """Columns that a foreign key leads to a column that names the unit: each could name it, or somebody else."""
    problem: str | None = None
    """Why it cannot be asked, if it cannot."""

    def is_kept_unique(self, column: str) -> bool:
        """Return whether a constraint keeps a column unique."""
        return column in self.facts and self.facts[column].is_unique


def starter(drafts: Sequence[TableDraft], *, account: str = "people", ledger: str = "hubbub.ledger") -> str:
    """The text of a policy, which reads as soon as every table has its unit, or is called public."""
    head = _HEAD.format(ledger=text(ledger), account=text(account))
    return "\n".join([head, *(_table(draft, drafts) for draft in drafts)])


def _table(draft: TableDraft, drafts: Sequence[TableDraft]) -> str:
    if draft.problem is not None:
        return f"# {header('tables', draft.name)} cannot be asked. {draft.problem}\n"
    lines = [header("tables", draft.name), f"path = {text(draft.path)}", f"format = {text(draft.format)}"]
    if draft.schema_name is not None:
        lines.append(f"schema = {text(draft.schema_name)}")
    if draft.table is not None:
        lines.append(f"table = {text(draft.table)}")
    if draft.schema_name is not None:
        lines.append("# copy = true               # ask a copy, made when it is opened, and not the server")
    is_single = draft.unit is not None and draft.is_kept_unique(draft.unit)
    lines += [
        *_unit(draft, drafts),
        "unique = true               # a constraint keeps a person to one row"
        if is_single
        else "# unique = true             # if a person has at most one row",
        '# size = 1000               # how many people there are, if that is public: with unique, and "replace-one"',
        "",
    ]
    lines.append(header("tables", draft.name, "columns"))
    keys = {step.key for other in drafts for step in other.steps if step.table == draft.name}
    taken = {step.key for other in drafts for step in other.steps[:1] if step.table == draft.name and other.has_path}
    lines += [_column(draft, name, engine, key=name in keys, taken=name in taken) for name, engine in draft.schema]
    return "\n".join(lines) + "\n"


def _unit(draft: TableDraft, drafts: Sequence[TableDraft]) -> list[str]:
    """Say whose the rows are, or how it could be said: what keeps them private before what makes them public."""
    if draft.unit is not None:
        return [f"unit = {text(draft.unit)}"]
    lines = [f"# unit = {text(column)}   # whose rows a foreign key leads to" for column in draft.unit_keys]
    for place, step in enumerate(draft.steps):
        mark = "" if draft.has_path and place == 0 else "# "
        target = next((other for other in drafts if other.name == step.table), None)
        kept = target is not None and target.is_kept_unique(step.key)
        why = "as a foreign key says" if kept else f"if {step.key} stands in one row of {step.table} alone"
        lines.append(f"{mark}{write_step(step)}   # {why}")
    if not lines:
        lines.append('# unit = "…"                # the column that says whose a row is: the person, patient, device')
    if not (draft.has_path and draft.steps):
        lines.append("# public = true             # instead of a unit, only if its rows may be shown to anybody")
    return lines


def _column(draft: TableDraft, name: str, engine: str | None, *, key: bool, taken: bool) -> str:
    """Declare a column, or show how; ``key`` says that a path could go by it, ``taken`` that one does."""
    unit = draft.unit is not None and draft.unit.lower() == name.lower()
    leads = key or name in {step.column for step in draft.steps}
    if engine is None or draft.format in UNTYPED:
        return _text_column(draft, name, unit=unit, leads=leads, key=key, taken=taken)
    kind = engine_kind(engine)
    if isinstance(kind, Unusable):
        return f"# {key_of(name)} {kind.reason}: it cannot be used."
    if unit:
        return f"# {key_of(name)} is the unit."
    if key:
        mark = "" if taken else "# "
        return f"{mark}{key_of(name)} = {{ unique = true }}   # so that rows of other tables find their unit"
    known = draft.facts.get(name, ColumnConstraints())
    keys = f"keys = [{', '.join(map(text, known.labels))}]" if known.labels else None
    hint = ", ".join([keys or _hint(kind), *(["nullable = false"] if known.is_required else [])])
    return f"# {key_of(name)} = {{ {hint} }}   # {kind}{', the labels of its enum' if keys else ''}"


def _text_column(draft: TableDraft, name: str, *, unit: bool, leads: bool, key: bool, taken: bool) -> str:
    """Declare a column of a text file: ids are text, which takes any of them, and everything else is guessed."""
    if unit:
        return f'{key_of(name)} = {{ type = "text" }}   # the unit; text takes any identifier, integer is faster'
    unique = ", unique = true" if taken else ""
    if leads:
        mark = "" if draft.has_types or taken else "# "
        more = "   # and unique = true, if a path goes by it" if key and not taken else ""
        return f'{mark}{key_of(name)} = {{ type = "text"{unique} }}{more}'
    guess = draft.types.get(name)
    if guess is None:
        return f'# {key_of(name)} = {{ type = "…" }}   # integer, real, text, date, timestamp or boolean'
    told = f"then perhaps {_hint(of(guess))}" if draft.has_types else "guessed: take out the # if it is right"
    return f'{"" if draft.has_types else "# "}{key_of(name)} = {{ type = "{guess}" }}   # {told}'


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
