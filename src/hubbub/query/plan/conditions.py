"""Aggregates under different conditions as one grouping by the conditions, of which a unit counts in a few.

    SELECT count(*) FILTER (WHERE ward = 'a'), count(*) FILTER (WHERE ward = 'b'), … FROM stays

By themselves these share ε: k counts have the noise of ε/k each. As a grouping by k conditions, of which a unit counts
in at most ``max_groups``, they have that of one count over so many groups. A row stands in the group of each condition
that it fulfils: a copy for each, or no copy but a number by CASE where no row fulfils two. A unit with rows in more
than ``max_groups`` of them counts in some, chosen by the keyed hash, as it does in groups of any other question.

Privacy:
    Claim: the grouping is a question like any other, and costs what its events say.
    Proof: its rows are the rows, or a union of filtered copies of them, each of which belongs to its unit still
        (query.ops), and its key is the number of a condition, from a list that the question fixes. So the claim of
        Aggregate holds for it with ``most_groups`` conditions of a unit: nothing is taken to be disjoint. Which plan is
        taken follows from the question, the policy and the noise of both plans, all public.
    Needs: the claims of query.ops; limits that the owner, or the question within them, states.
    Ref: McSherry 2009 (partition); SOUNDNESS 10.

A limit on conditions is a limit on groups, and drops what is beyond it. So it is taken only where that is meant: where
it drops nothing (a unit has one row, which fulfils one condition at most); where the owner declares ``max_groups`` and
no row fulfils two conditions, as with GROUP BY; or where the question itself states ``max_groups_contributed``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hubbub.policy.kinds import Type, integer
from hubbub.policy.tables import Policy
from hubbub.query.check.bounds import Interval
from hubbub.query.check.disjoint import are_disjoint
from hubbub.query.check.prune import prune
from hubbub.query.check.shape import shape
from hubbub.query.expression import Call, Column, Expression, Literal, columns_of, literal
from hubbub.query.functions import call
from hubbub.query.ops import Filter, Group, Project, Relation, RelationUnion, Scan
from hubbub.query.question import Asked, Question

KEY = "condition"
MOST_CONDITIONS = 64
"""Conditions of one grouping: the rows are read once for each of them."""
KNOWN_AS = " with conditions side by side"
"""What the ledger knows such a question as, behind its own name: its stored numbers stand in other positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The grouping by conditions, and where in it each aggregate of the questions is."""

    question: Question
    """One group for each condition; each aggregate once, however many conditions it stands under."""
    policy: Policy
    """With the limits of the grouping."""
    places: tuple[tuple[int, int], ...]
    """For each aggregate that was asked: which one of the grouping it is, and under which condition."""

    @property
    def count(self) -> int:
        """How many conditions there are."""
        return len(self.question.groups[0].values)

    @property
    def kept(self) -> int:
        """Under how many of them a unit counts."""
        return self.policy.limits.groups


def name_grouped(question: Question) -> Question:
    """Return the question under the name of its grouping by conditions."""
    known = question.identity
    return replace(question, grouped=True, known_as=known if is_grouped(known) else known + KNOWN_AS)


def is_grouped(known: str) -> bool:
    """Return whether what the ledger knows is a question whose conditions were measured side by side."""
    return known.endswith(KNOWN_AS)


def rename(known: str) -> str:
    """Return what the ledger would know a question as that is measured in the other way."""
    return known.removesuffix(KNOWN_AS) if is_grouped(known) else known + KNOWN_AS


def may_be_grouped(question: Question) -> bool:
    """Return whether each of several aggregates stands under a FILTER: which way is taken depends on the balance."""
    alone = not question.groups and not question.sets
    return alone and len(question.asked) > 1 and all(_split(asked) is not None for asked in question.asked)


def find_filters(question: Question, policy: Policy, *, single: bool) -> Conditions | None:
    """Return the grouping for aggregates of one question that each stand under a FILTER; None where it is none."""
    if question.groups or question.sets or question.grouped is False:
        return None
    found = [_split(asked) for asked in question.asked]
    filtered = [one for one in found if one is not None]
    if len(filtered) < len(found):
        return None
    bought = _widen_bounds(question, zip(question.asked, filtered, strict=True))
    whole = replace(question, bought={**question.bought, **bought})
    return _group(whole, question.relation, filtered, policy, single=single, stated=question.limited)


def find_parts(questions: Sequence[Question], policy: Policy, *, single: bool) -> Conditions | None:
    """Return the grouping for several questions that each have a WHERE of their own over the same rows."""
    if any(one.groups or one.sets for one in questions):
        return None
    parted = [_take_off_filters(one.relation) for one in questions]
    relation: Relation | None = parted[0][0]
    for other, _ in parted[1:]:
        relation = None if relation is None else _merge(relation, other)
    if relation is None or not all(conditions for _, conditions in parted):
        return None
    pairs = [
        (conditions[0] if len(conditions) == 1 else call("and", *conditions), asked)
        for question, (_, conditions) in zip(questions, parted, strict=True)
        for asked in question.asked
        if asked.second is None
    ]
    if len(pairs) < sum(len(one.asked) for one in questions):
        return None
    whole = replace(
        questions[0],
        text=" ".join(one.text for one in questions),
        columns={name: facts for one in questions for name, facts in one.columns.items()},
    )
    return _group(whole, relation, pairs, policy, single=single, stated=False)


def _split(asked: Asked) -> tuple[Expression, Asked] | None:
    """Return the condition of an aggregate of CASE WHEN c THEN x END, and the aggregate of x."""
    match asked.argument:
        case Call(function="case", arguments=(condition, value, Literal(value=None))) if asked.second is None:
            return condition, replace(asked, argument=value)
    return None


def _widen_bounds(
    question: Question, pairs: Iterable[tuple[Asked, tuple[Expression, Asked]]]
) -> dict[Expression, Interval]:
    """Return bounds of values that were bought under conditions: the widest of each value."""
    found: dict[Expression, Interval] = {}
    for asked, (_, bare) in pairs:
        ends = None if asked.argument is None else question.bought.get(asked.argument)
        if ends is not None and bare.argument is not None:
            low, high = found.get(bare.argument, ends)
            found[bare.argument] = min(low, ends[0]), max(high, ends[1])
    return found


def _group(
    question: Question,
    relation: Relation,
    pairs: Sequence[tuple[Expression, Asked]],
    policy: Policy,
    *,
    single: bool,
    stated: bool,
) -> Conditions | None:
    conditions = list(dict.fromkeys(condition for condition, _ in pairs))
    apart = len(conditions) <= MOST_CONDITIONS and are_disjoint(conditions)
    limited = _limit(len(conditions), policy, apart=apart, single=single, stated=stated)
    if limited is None or len(conditions) > MOST_CONDITIONS or KEY in shape(relation):
        return None
    asked: list[Asked] = []
    places = []
    for condition, one in pairs:
        same = [place for place, other in enumerate(asked) if replace(other, text=one.text) == one]
        asked += [] if same else [one]
        places.append((same[0] if same else len(asked) - 1, conditions.index(condition)))
    needed = frozenset[str]().union(*(columns_of(value) for one in asked for value in one.arguments))
    rows, key = (_number_rows if apart else _copy_rows)(relation, conditions, needed)
    grouped = replace(
        name_grouped(question),
        relation=prune(rows, needed | columns_of(key)),
        groups=(Group(name=KEY, expression=key, values=tuple(range(len(conditions)))),),
        asked=tuple(asked),
        outputs=(),
        having=None,
        order=(),
        limit=None,
        offset=0,
    )
    return Conditions(question=grouped, policy=limited, places=tuple(places))


def _number_rows(
    relation: Relation, conditions: Sequence[Expression], needed: frozenset[str]
) -> tuple[Relation, Expression]:
    """Return the rows, and the number of the one condition that a row fulfils; the first, if there were several."""
    pairs = [part for place, condition in enumerate(conditions) for part in (condition, literal(place))]
    return relation, call("case", *pairs, literal(None, Type.INTEGER))


def _copy_rows(
    relation: Relation, conditions: Sequence[Expression], needed: frozenset[str]
) -> tuple[Relation, Expression]:
    """Return a copy of each row for each condition that it fulfils, and the number of that condition."""
    shown = tuple((name, Column(name, kind)) for name, kind in shape(relation).items() if name in needed)
    arms = tuple(
        Project(input=Filter(input=relation, condition=condition), columns=((KEY, literal(place)), *shown))
        for place, condition in enumerate(conditions)
    )
    return RelationUnion(inputs=arms), Column(KEY, integer(0, len(conditions) - 1, nullable=False))


def _limit(many: int, policy: Policy, *, apart: bool, single: bool, stated: bool) -> Policy | None:
    """Return the policy with the limits of the grouping; None where nobody meant any, or they limit nothing."""
    limits = policy.limits
    kept = 1 if single and apart else limits.max_groups
    if kept is None or kept >= many or not (apart or stated):
        return None
    return replace(policy, limits=replace(limits, max_groups=kept, max_rows=1 if single else limits.max_rows))


def _take_off_filters(relation: Relation) -> tuple[Relation, list[Expression]]:
    conditions: list[Expression] = []
    while isinstance(relation, Filter):
        conditions.insert(0, relation.condition)
        relation = relation.input
    return relation, conditions


def are_alike(one: Relation, other: Relation) -> bool:
    """Return whether two relations are the same rows, but for the filters over them."""
    return _merge(_take_off_filters(one)[0], _take_off_filters(other)[0]) is not None


def _merge(one: Relation, other: Relation) -> Relation | None:
    """Return rows that have the columns of both, if they are the same rows."""
    if isinstance(one, Scan) and isinstance(other, Scan):
        columns = tuple(dict.fromkeys((*one.columns, *other.columns)))
        same = replace(one, columns=columns) == replace(other, columns=columns) and one.held == other.held
        return replace(one, columns=columns) if same else None
    return one if one == other else None
