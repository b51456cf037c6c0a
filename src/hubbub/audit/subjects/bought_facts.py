"""Facts bought for a question, as a subject of an audit: the histogram of a look, on tables made up from the policy.

The exact counts of both sides are held against the sensitivity that was proven, under secrets that are the same on
both, and under other orders of the rows and more threads; then noisy counts are drawn and counted. What is read off
them is post-processing, and is not looked at.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs, Raised
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects.in_process.inside import FIXED, World, exact_of, fixed_key
from hubbub.audit.subjects.made_up_tables import OfTables, tables_of
from hubbub.audit.subjects.queries import literals
from hubbub.errors import HubbubError, NotAllowed
from hubbub.parameters import Real, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.sensitivity import Norm
from hubbub.query.missing.lacking import lacking
from hubbub.query.missing.looks import Look, looks, shares
from hubbub.query.read.sql import question
from hubbub.testing.made_up import Data, Schema, with_declared_keys

Array = np.ndarray[Any, Any]

_KEYS = (FIXED, 0x9E3779B97F4A7C15)
"""Secrets that choose which row of a unit is looked at, pair by pair: the claim holds for each of them."""
_VARIED = 6
"""Pairs that are looked at with their rows in another order too."""
_MOST = 6
"""Bins whose noisy counts are told: those that differ between the sides."""


class OfLook(OfTables):
    """One of the looks that a question under a policy needs first."""

    def __init__(self, policy: Policy, text: str, *, epsilon: Real, place: int = 0) -> None:
        held = with_declared_keys(policy)
        self._schema = Schema(policy=held, hints=literals(text))
        self._world = World(held)
        self._world.put(self._schema.public)
        self._world.put({table.name: () for table in self._schema.private})
        db = self._world.opened()
        each, _ = shares(lacking(question(text, db), db.policy), positive("epsilon", epsilon))
        if not each:
            raise NotAllowed("The question lacks nothing, so nothing is bought for it. Audit the question itself.")
        self._look, share = list(each.items())[place]
        self._aggregate = self._look.aggregate
        self._neighbors = held.budget.neighbors
        self._mechanism = self._look.mechanism(share, self._neighbors)
        self._text = " ".join(text.split())
        self.name = f"{self._look.text}, bought for {self._text}"
        self._known: WeakKeyDictionary[Data, dict[int, Array]] = WeakKeyDictionary()
        self._sides: WeakKeyDictionary[Data, tuple[ReferenceType[Data], int]] = WeakKeyDictionary()
        self._turn = self._varied = 0

    @property
    def claim(self) -> Claim:
        """The claim of the charge."""
        return Claim.of(self._mechanism.event)

    def _register(self, pair: Pair) -> Pair:
        key = _KEYS[self._turn % len(_KEYS)]
        self._turn += 1
        self._sides[pair.x], self._sides[pair.y] = (ref(pair.y), key), (ref(pair.x), key)
        return pair

    def faults(self, pair: Pair) -> list[str]:
        """Counts that differ by more than was proven, or that depend on more than units' rows."""
        proven = self._look.sensitivity(self._neighbors).in_norm(Norm.L1)
        assert proven is not None
        _, key = self._sides[pair.x]
        try:
            one, other = (self._counts(side, key) for side in (pair.x, pair.y))
        except Exception as error:
            return [f"it was not counted: {type(error).__name__}: {error}"]
        moved = int(np.abs(one - other).sum())
        if moved > proven:
            return [f"the bins moved by {moved}, and {proven} was proven"]
        self._varied += 1
        if self._varied <= _VARIED:
            chance = Chance("shuffled")
            mixed = {name: chance.shuffle(rows) for name, rows in pair.x.tables().items()}
            if not np.array_equal(self._count(mixed, key, threads=2), one):
                return ["rows in another order, or two threads, can be seen"]
        return []

    def answers(self, value: Data, *, times: int) -> Outputs:
        """Noisy counts of the bins in which the sides differ."""
        other, key = self._sides[value]
        try:
            mine, beside = self._counts(value, key), self._counts(other() or value, key)
        except HubbubError as error:
            return [Raised(type(error).__name__, str(error))] * times
        shown = np.append(np.flatnonzero(mine != beside), np.arange(_MOST))[:_MOST]
        return np.reshape(self._mechanism.draw(np.tile(mine[shown], times)), (times, _MOST))

    def show_pair(self, pair: Pair) -> str:
        """The question, and its tables on both sides."""
        head = f"{self.name}  (ε = {float(self._mechanism.epsilon):.6g})"
        relation, schema = self._aggregate.input, self._schema
        return "\n".join([head, *tables_of(pair, policy=schema.policy, public=schema.public, relation=relation)])

    def _counts(self, data: Data, key: int) -> Array:
        known = self._known.setdefault(data, {})
        if key not in known:
            known[key] = self._count(data.tables(), key)
        return known[key]

    def _count(self, tables: Any, key: int, *, threads: int = 1) -> Array:
        self._world.put(tables, threads=threads)
        with fixed_key(key):
            db = self._world.opened()
            return np.asarray(self._look.counts(exact_of(db, self._aggregate)))


def looks_of(policy: Policy, text: str, *, epsilon: Real = Fraction(1)) -> Sequence[OfLook]:
    """All that a question buys, each as a subject."""
    return [OfLook(policy, text, epsilon=epsilon, place=place) for place in range(len(lacks(policy, text)))]


def lacks(policy: Policy, text: str) -> Sequence[Look]:
    """Return the looks that the question would buy first."""
    world = World(policy)
    world.put(dict.fromkeys(policy.tables, ()))
    db = world.opened()
    return looks(lacking(question(text, db), db.policy))
