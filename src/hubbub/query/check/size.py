"""The number of rows of a relation, where it is public: the owner declares it, for units that replace each other.

Neighbours that differ by a replaced unit have equally many units. Where each of them has one row, and nothing on the
way adds or drops one, the number of rows is the number that the owner declares, and no data says more than that.

Privacy:
    Claim: what is returned depends on declarations alone, and no answer promises less because it is wrong.
    Proof: it is ``Table.size``, or nothing. Whoever uses it adds up distances from a middle, to which a unit without a
        row adds 0, and divides by the number, or adds it times the middle, when the noise is drawn: post-processing
        with a constant. The distances move as far as ``bound_tally`` says whatever the number is. A number that the
        rows do not have makes the answer wrong; ``hubbub check`` looks, and nothing rests on it until it was right.
    Needs: a policy that refuses sizes where units are added and removed: there the number is what is protected.
    Ref: Dwork, McSherry, Nissim, Smith 2006, for neighbours of one size; SOUNDNESS 7, 21.
"""

from hubbub.policy.tables import Policy
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.ops import JoinKind, JoinPublic, Project, Reduce, Relation, Scan, Window


def public_size(relation: Relation, policy: Policy) -> int | None:
    """Return how many rows there are, one of each unit, if that is public."""
    if policy.budget.neighbors is not Neighbors.REPLACE_ONE:
        return None
    match relation:
        case Scan(table=table, unit=unit, held=held):
            known = unit is not None and table in policy.enforced and held == policy.files_behind(table)
            return policy.tables[table].size if known else None
        case Project(input=below) | Window(input=below):
            return public_size(below, policy)
        case JoinPublic(input=below, kind=JoinKind.LEFT, most=most, held=stamp) if most <= 1 and stamp is not None:
            return public_size(below, policy)
        case Reduce(input=below, keys=()):
            return public_size(below, policy)
    return None
