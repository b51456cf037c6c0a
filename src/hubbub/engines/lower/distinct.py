"""The number of different values that a group's units have together, when each brings only so many of its own.

Privacy:
    Claim: adding or removing a unit changes the number in each of its groups by at most ``most``, and in no other.
    Proof: the values that a unit brings to a group are a function of its own rows (engines.limit), and at most
        ``most``; those of other units stay. A union of sets grows or shrinks by no more than the set that is added or
        taken away has members.
    Needs: engines.limit; values that are equal count once, in the engine as in the interpreter.
    Ref: SOUNDNESS 5.
"""

from hubbub.engines.lower.row_limit import CODE, KEPT, limit_rows, owners
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.words import alias, count_distinct, name, present, relation, select, within
from hubbub.query.ops import Aggregate

_VALUE, _OF, _FOUND = "value", "of", "found"


def table(index: int) -> str:
    """Return what the numbers of a tally are called in the statement."""
    return f"distinct{index}"


def distinct(op: Aggregate, index: int) -> Query:
    """Count over the kept rows: one row for each group, with its number."""
    value, grouped = name(_VALUE), bool(op.groups)
    by = [name(CODE)] if grouped else []
    own = by if op.single else owners(grouped=grouped)
    there = select(relation(KEPT), *own, alias(name(f"s{index}"), _VALUE), where=[present(name(f"s{index}"))])
    kept: Query = there
    if not op.single:
        kept = limit_rows(there, value, op.tallies[index].bounds[1], grouped=grouped, copies=False)
    many = count_distinct(value)
    return select(within(kept), *(alias(one, _OF) for one in by), alias(many, _FOUND), by=by)
