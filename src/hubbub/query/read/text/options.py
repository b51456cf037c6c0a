"""Options by which a question states its own privacy, in the words that BigQuery has for it.

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-9, max_groups_contributed = 3) ward, COUNT(*) …

The clause is read here and taken out of the text; spaces stand in its place, so that carets still point to the right
one.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import NotAllowed
from hubbub.parameters import Real
from hubbub.policy.tables import Policy
from hubbub.query.read.text.sql_text import MOST_CHARACTERS, SKIPPED

_CLAUSE = re.compile(r"\bSELECT(\s+WITH\s+DIFFERENTIAL_PRIVACY\b(?:\s+OPTIONS\s*\(([^()]*)\))?)", re.IGNORECASE)
_OPTION = re.compile(r"\s*([a-z_]+)\s*=\s*([^,]+?)\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][-+]?\d{1,3})?|\.\d+([eE][-+]?\d{1,3})?")
_KNOWN = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that were stated; None where one was not."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    unit: str | None = None


def split_options(text: str) -> tuple[str, Options]:
    """The text without its clause, and what the clause says. What is no question is left to whoever reads it."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        return text, Options()
    bare = SKIPPED.sub(lambda found: " " * len(found[0]), text)
    clauses = list(_CLAUSE.finditer(bare))
    if not clauses:
        return text, Options()
    if len(clauses) > 1 or _depth(bare[: clauses[0].start()]):
        raise NotAllowed("WITH DIFFERENTIAL_PRIVACY stands once, in the outermost SELECT. Take the others out.")
    start, end = clauses[0].span(1)
    options = "" if clauses[0][2] is None else text[clauses[0].start(2) : clauses[0].end(2)]
    return text[:start] + " " * (end - start) + text[end:], _read(options)


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")


def _read(options: str) -> Options:
    said: dict[str, str] = {}
    for part in options.split(",") if options.strip() else []:
        found = _OPTION.fullmatch(part)
        name = found[1].lower() if found else ""
        if found is None or name not in _KNOWN or name in said:
            raise NotAllowed(f"OPTIONS takes {', '.join(_KNOWN)}, each once, as name = value.")
        said[name] = found[2]
    groups = _number(said, "max_groups_contributed")
    if groups is not None and (groups.denominator != 1 or groups < 1):
        raise NotAllowed("max_groups_contributed is a whole number from 1 on.")
    return Options(
        epsilon=_number(said, "epsilon"),
        delta=_number(said, "delta"),
        max_groups=None if groups is None else int(groups),
        unit=said.get("privacy_unit_column"),
    )


def _number(said: dict[str, str], name: str) -> Fraction | None:
    value = said.get(name)
    if value is None or value.upper() == "NULL":
        return None
    if not _NUMBER.fullmatch(value):
        raise NotAllowed(f"{name} is a number.")
    return Fraction(value)


def agreed(name: str, given: Real | None, said: Fraction | None) -> Real | None:
    """Return what was given beside the question, or said in it; accept both only if they are the same."""
    if given is not None and said is not None and Fraction(given) != said:
        raise NotAllowed(f"{name} is {float(said):g} in the question, and {float(given):g} beside it. Say it once.")
    return said if given is None else given


def limit_groups(policy: Policy, said: Options) -> Policy:
    """The policy with fewer groups a unit, if the question says so. It may not say more than the owner did."""
    units = {table.unit.lower() for table in policy.tables.values() if table.unit is not None}
    if said.unit is not None and said.unit.lower() not in units:
        raise NotAllowed(f"privacy_unit_column is {said.unit}, but the owner declared {', '.join(sorted(units))}.")
    declared = policy.limits.max_groups
    if said.max_groups is None or said.max_groups == declared:
        return policy
    if declared is not None and said.max_groups > declared:
        raise NotAllowed(f"max_groups_contributed is {said.max_groups}, and the owner allows {declared}. Say less.")
    return replace(policy, limits=replace(policy.limits, max_groups=said.max_groups))
