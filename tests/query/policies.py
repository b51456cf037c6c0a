"""Random policies, and questions whose noise depends on what they declare: one row a person, sizes, limits of rows over
all groups, values that are never missing, bounds on one side of 0, conditions side by side, both relations.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from random import Random

from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from tests.query.inside import PLACES, STAYS, _table
from tests.query.test_replay import TRUTH, value

KINDS = ("pure", "gaussian", "replace", "replace gaussian")
BOUNDS = ((-10, -2), (3, 9), (-4, 7), (0, 10), (-6, 0))


def any_policy(rng: Random, kind: str, *, large: bool = True) -> Policy:
    """A policy whose account counts as it says; with a small budget, what is chosen depends on the balance."""
    replaced = kind.startswith("replace")
    budget = Budget(
        epsilon=10**6 if large else 3,
        delta=Fraction(1, 10**6) if kind.endswith("gaussian") else 0,
        neighbors=Neighbors.REPLACE_ONE if replaced else Neighbors.ADD_REMOVE,
    )
    unique = rng.random() < 0.6
    low, high = rng.choice(BOUNDS)
    whole = rng.random() < 0.5
    columns = [
        replace(
            one,
            kind=replace(one.kind, nullable=not (whole and one.name in {"nights", "cost", "points"})),
            bounds=(Fraction(low), Fraction(high)) if one.name == "nights" else one.bounds,
        )
        for one in STAYS
    ]
    stays = replace(
        _table("stays", tuple(columns), "person"),
        unique=unique,
        size=rng.choice((None, 6, 30)) if unique and replaced else None,
    )
    return Policy(
        account="people",
        budget=budget,
        tables={"stays": stays, "places": _table("places", PLACES, None)},
        limits=Limits(
            max_groups=rng.choice((1, 1, 1, 2, 50)),
            max_rows=rng.choice((1, 2, 3, 20)),
            max_total_rows=rng.choice((None, None, 1, 2, 5)),
            max_unit_rows=rng.choice((2, 30)),
            buy=False,
        ),
        version="1",
        enforced=frozenset({"stays"} if unique else ()),
        seen={"stays": NO_FILES} if unique else {},
    )


def conditions(rng: Random) -> list[str]:
    """Conditions of which no row fulfils two, by several ways to say so, or any that overlap or are unknown."""
    many = rng.randint(3, 5)
    ends = sorted(rng.sample(range(-2, 12), many + 1))
    return rng.choice(
        (
            [f"nights = {one}" for one in rng.sample(range(-1, 12), many)],
            [f"nights >= {low} AND nights < {high}" for low, high in itertools.pairwise(ends)],
            [f"ward IN ('a', '{one}')" if one == "b" else f"ward = '{one}'" for one in "bcd"],
            ["urgent", "NOT urgent", "urgent IS NULL"],
            rng.sample(TRUTH, many),
        )
    )


AGGREGATES = (
    *("count(*)", "count(cost)", "count(DISTINCT person)", "count(DISTINCT ward)", "sum(7)", "sum(-7)"),
    *("sum(nights)", "sum(-nights)", "sum(nights - 20)", "avg(nights)", "avg(cost)", "avg(nights - 20)", "sum(cost)"),
    *("stddev(cost)", "var_pop(nights)", "median(cost)", "min(nights)", "avg(coalesce(cost, 5.0))", "sum(abs(nights))"),
    *("covar_pop(cost, nights)", "corr(cost, nights)", "avg(least(greatest(points, -3), 9))"),
)


def side_by_side(rng: Random) -> str:
    """Aggregates under a FILTER each, now and then with a limit of the question's own."""
    own = (*AGGREGATES, f"sum({value(rng, False)})")
    same = rng.choice(own)
    shown = [f"{same if rng.random() < 0.7 else rng.choice(own)} FILTER (WHERE {one})" for one in conditions(rng)]
    stated = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = {rng.choice((1, 1, 2))}) "
    rows = rng.choice(("stays", "stays", "stays JOIN places ON ward = id", "stays LEFT JOIN places ON ward = id"))
    below = f" WHERE {rng.choice(TRUTH)}" if rng.random() < 0.3 else ""
    return f"SELECT {stated if rng.random() < 0.5 else ''}{', '.join(shown)} FROM {rows}{below}"


def plain(rng: Random) -> str:
    """Several aggregates of all rows, or of groups: where a public size, one row a person and both ends matter."""
    shown = rng.sample(AGGREGATES, rng.randint(1, 3))
    key = rng.choice(("", "", "", "ward", "urgent", "nights > 3"))
    below = f" WHERE {rng.choice(TRUTH)}" if rng.random() < 0.2 else ""
    return f"SELECT {', '.join([*([key] if key else []), *shown])} FROM stays{below}{f' GROUP BY {key}' if key else ''}"


def together(rng: Random) -> list[str]:
    """Questions at one price: most differ in their conditions alone."""
    same = rng.choice(AGGREGATES)
    asked = [
        f"SELECT {same if rng.random() < 0.7 else ', '.join(rng.sample(AGGREGATES, 2))} FROM stays WHERE {one}"
        for one in conditions(rng)
    ]
    further = ("SELECT count(*) FROM stays", "SELECT ward, count(*) FROM stays GROUP BY ward")
    return rng.sample(asked, len(asked)) + ([rng.choice(further)] if rng.random() < 0.3 else [])
