"""Guesses for a policy: types of text files, out of their values. They are the owner's, to be confirmed and declared.

Nothing but a drafted policy is made of them. Questions read what is declared there, and never a value for its type.
"""

from collections.abc import Mapping, Sequence

from hubbub.cli.owner import connect
from hubbub.engines.duckdb.probe import quote
from hubbub.engines.duckdb.scan import scan_value
from hubbub.engines.sources.conversion import Progress
from hubbub.policy.build import single_table
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import Policy, TableSource
from hubbub.privacy.filter import Budget

SHARE = 0.99
"""The share of a column's values that must read as a type. Beyond that, a stray word makes a column of numbers text;
far below, a column of codes of which many are digits would lose the others."""

_FORMS: tuple[tuple[Type, str], ...] = (
    (Type.INTEGER, r"-?(?:0|[1-9][0-9]*)"),  # 0123 is a code: read as a number, it would lose its zero
    (Type.BOOLEAN, r"(?i:true|false)"),
    (Type.REAL, r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
    (Type.DATE, r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    (Type.TIMESTAMP, r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}.*"),
)
"""The types that texts may be, each with how its values are written; the first that fits nearly all is taken."""


def guess_types(
    source: TableSource, columns: Sequence[str], *, progress: Progress | None = None
) -> Mapping[str, Type | None]:
    """Return a type for each column of a text file; None where it has no value."""
    draft = single_table(
        name="t", source=source, schema=[(column, None) for column in columns], unit=None,
        types=dict.fromkeys(columns, "text"),
    )  # fmt: skip
    policy = Policy(account="draft", budget=Budget(1), tables={draft.name: draft})
    counts = ["count(*)"]
    for column in columns:
        value = f"nullif(trim({quote(column)}), '')"
        counts.append(f"count({value})")
        for type_, form in _FORMS:
            reads = f"regexp_full_match({value}, '{form}') AND ({scan_value(value, of(type_))}) IS NOT NULL"
            counts.append(f"count(CASE WHEN {reads} THEN 1 END)")
    with connect(policy, progress=progress) as tables:
        (row,) = tables.ask(f"SELECT {', '.join(counts)} FROM t")
    width = 1 + len(_FORMS)
    parts = (row[1 + place * width : 1 + (place + 1) * width] for place in range(len(columns)))
    return {column: _choose(*part) for column, part in zip(columns, parts, strict=True)}


def _choose(known: int, *reads: int) -> Type | None:
    """Take the first type that nearly all values have."""
    if not known:
        return None
    fits = (type_ for (type_, _), count in zip(_FORMS, reads, strict=True) if count >= SHARE * known)
    return next(fits, Type.TEXT)
