"""The same data, asked by its owner and by principals with and without grants."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import hubbub as hb
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.query.frame.frame import Frame
from tests.query.inside import World, row

TOTAL = "SELECT sum(points) AS s FROM stays"
"""It lacks bounds, which are bought."""
COUNT = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"
ALL: dict[str, Any] = {"over": {"ward": ["a", "b"]}, "epsilon": 1}
ONE = Fraction(1)


def loaded(world: World, *, limits: Limits | None = None) -> hb.Database:
    """Sixty people with a row each, asked by the owner; bounds of points are for sale."""
    people = [row(unit, ward="ab"[unit % 2], nights=1, cost=1.0, points=unit % 40) for unit in range(60)]
    return world.load(people, limits=limits or Limits(max_groups=1, max_rows=1), buys=True)


def asked_by(db: hb.Database, principal: str) -> hb.Database:
    """The same data, asked by somebody else."""
    return hb.Database(db.policy, ledger=db.ledger, engine=db._engine, principal=principal)


def granted(db: hb.Database, principal: str, limit: Fraction | int | None = None, **terms: Any) -> hb.Database:
    own = None if limit is None else hb.Budget(epsilon=Fraction(limit))
    db.ledger.grant("people", principal, limit=own, **terms)
    return asked_by(db, principal)


def entries(db: hb.Database) -> int:
    return sum(1 for _ in db.ledger.entries())


def own(db: hb.Database) -> Fraction:
    """What was charged to the limit of whoever asks."""
    return db.ledger.statement("people", "principal", db.principal).spent.loss * LOSS_UNIT


def asked_by_owner(db: hb.Database) -> hb.Database:
    return asked_by(db, "owner")


def frame(db: hb.Database) -> Frame:
    """A frame that was made while there was a grant."""
    return replace(asked_by_owner(db).table("stays"), asker=db)
