"""Replay on neighbouring tables through ``db.publish`` (SOUNDNESS 32), with faults planted that it must see.

Price, order, schema, error, number and kind of draws agree; Secrets move within what was proven; what is stored is the
same where the Secrets are; and exact cells are what a count in Python says.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest

from hubbub.engines import answers, held
from hubbub.engines.duckdb import engine as engine_module
from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import total_limit
from hubbub.engines.lower.aggregate import aggregate
from hubbub.gate import meter
from hubbub.gate.meter import Meter, answered
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import offer
from hubbub.publish.terms import Contribution
from hubbub.query.ops import Aggregate
from hubbub.session import session as door
from tests.publish.replay_faults import differing, misunderstood, out_of_order
from tests.publish.replaying import STRATEGIES, Case, Seen, case, published
from tests.query.expressions import TIMES
from tests.query.inside import World
from tests.query.planted import all_but_overflow

CASES = 45 * TIMES
"""Of each kind of account."""
BUDGETS = {
    "pure": Budget(epsilon=Fraction(10**6)),
    "gaussian": Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6)),
    "replace": Budget(epsilon=Fraction(10**6), neighbors=Neighbors.REPLACE_ONE),
    "replace gaussian": Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6), neighbors=Neighbors.REPLACE_ONE),
}
Worlds = tuple[World, World, World]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worlds]]:
    """The tables, their neighbours, and their neighbours with the others' Secrets."""
    with ExitStack() as stack:
        made: dict[str, Worlds] = {}
        for kind, budget in BUDGETS.items():
            sides = [World(tmp_path_factory.mktemp(f"{kind}{side}"), budget=budget) for side in range(3)]
            for side in sides:
                stack.callback(side.close)
            made[kind] = sides[0], sides[1], sides[2]
        yield made


_VERSION = iter(range(1, 1 << 40))


def compared(worlds: Worlds, one: Case) -> tuple[Seen, list[str], bool]:
    """All that is wrong about a case, and whether a unit was cut off."""
    version = next(_VERSION)
    first = published(worlds[0], one, one.rows, version=version)
    faults = out_of_order(first)
    meant, cut = misunderstood(one, first)
    alike = one.what != "unit"
    imposed = published(worlds[2], one, one.other, version=version, given=first.opened, threads=4)
    faults += [*meant, *out_of_order(imposed), *differing(first, imposed, same=alike, imposed=True)]
    if not one.buys:  # else what is bought differs with its noise, and all that follows from it
        second = published(worlds[1], one, one.other, version=version)
        faults += [*out_of_order(second), *differing(first, second, same=alike, imposed=False)]
    return first, faults, cut


@pytest.mark.parametrize("kind", BUDGETS)
def test_neighbours_differ_in_their_secrets_alone(worlds: dict[str, Worlds], kind: str) -> None:
    """And what was reached, printed with -s: every strategy, limits that are bought, units that are cut off."""
    reached: Counter[str] = Counter()
    for number in range(CASES):
        one = case(kind, number, replace="replace" in kind)
        seen, faults, cut = compared(worlds[kind], one)
        assert not faults, (number, str(one), faults)
        there = seen.outcome == "answered"
        reached[one.strategy if there else "refused"] += 1
        reached.update(
            {
                "answered": there,
                "cut off": cut,
                "wide and not empty": len(one.over) > 2 and bool(seen.counts),
                "bought": there and len(seen.reads) > 1,
            }
        )
        reached[f"{len(one.over)} axes"] += there
        reached[f"another {one.what}"] += there
    print("\n".join(f"{many:5} {what}" for what, many in sorted(reached.items())))
    wanted = [*dict(STRATEGIES), "cut off", "bought", "1 axes", "2 axes", "10 axes", "wide and not empty", "refused"]
    assert not [what for what in wanted if not reached[what]], reached
    assert reached["answered"] > 0.8 * CASES, reached


def fallen(holds: bool) -> AbstractContextManager[Any]:
    """Whether files are still what facts were seen of, when they are read: all is planned as if they were."""
    return mock.patch.object(held.Held, "holds", return_value=holds)


@pytest.mark.parametrize("kind", BUDGETS)
def test_neighbours_differ_in_their_secrets_alone_where_facts_have_fallen(worlds: dict[str, Worlds], kind: str) -> None:
    """Units were seen to have one row, and have many: the long statement bounds them to the one that noise is for.

    Where a unit is replaced, one row goes and one comes. That is one row replaced for a mechanism that counts rows
    (Fourier's Resolution, which doubles what it proves for one), and 2 in L1 for all others.
    """
    reached: Counter[str] = Counter()
    bounded, unsure = 0, answers.doubt_facts

    def counting(op: Any) -> Any:
        nonlocal bounded
        bounded += 1
        return unsure(op)

    with fallen(holds=False), mock.patch.object(engine_module, "doubt_facts", counting):
        for number in range(CASES):
            one = replace(case(f"fallen {kind}", number, replace="replace" in kind), unique=True, buys=False)
            seen, faults, cut = compared(worlds[kind], one)
            assert not faults, (number, str(one), faults)
            there = seen.outcome == "answered"
            reached[one.strategy if there else "refused"] += 1
            reached["cut off"] += cut
            if there:
                said = seen.prepared.terms.contribution
                reached["one row each"] += (said.cells, said.each) == (1, 1)
    assert not [what for what in (*dict(STRATEGIES), "cut off") if not reached[what]], reached
    assert reached["one row each"] > 0.7 * CASES, reached
    assert bounded >= 3 * reached["one row each"], "the short statement was run"


@pytest.mark.parametrize("kind", ["pure", "replace"])
def test_facts_that_are_believed_when_they_have_fallen_are_seen(worlds: dict[str, Worlds], kind: str) -> None:
    """A planted fault: the short statement is run on rows that it was not made for, Fourier's among them."""
    seen = set()
    with fallen(holds=True):
        for number in range(CASES):
            one = replace(case(f"fallen {kind}", number, replace="replace" in kind), unique=True, buys=False)
            if any("noise was made for" in fault for fault in compared(worlds[kind], one)[1]):
                seen.add(one.strategy)
    assert seen >= {"fourier", "flat", "hierarchy"}, seen


# Planted

_contribution_of = offer.contribution_of


def _fewer(**less: Callable[[int], int]) -> Callable[[Any], Contribution]:
    """Strategies are told of fewer cells, or of fewer rows, than the plan lets a unit have."""

    def told(planned: Any) -> Contribution:
        one = _contribution_of(planned)
        said = {name: getattr(one, name) for name in ("cells", "each", "total")}
        said |= {name: max(1, change(said[name])) for name, change in less.items()}
        return Contribution(**said, neighbors=one.neighbors)

    return told


def _unbounded(op: Aggregate, *rest: Any, **more: Any) -> Any:
    (tally,) = op.tallies
    wide = replace(tally, bounds=(tally.bounds[0], 10**6))
    return aggregate(replace(op, most_groups=10**6, together=None, tallies=(wide,)), *rest, **more)


def _many_cells(op: Aggregate, *rest: Any, **more: Any) -> Any:
    return aggregate(replace(op, most_groups=op.most_groups + 1), *rest, **more)


_least_limit = total_limit.least_limit


def _one_more(op: Aggregate) -> int:
    """Rows of a unit that has one too many are taken for rows that no limit cuts."""
    least = _least_limit(op)
    return least + 1 if least else 0


def _read_first(ledger: Any, ask: Any, work: Callable[[Meter], str], **more: Any) -> Any:
    """Reads, draws, and pays then."""
    ample = Budget(epsilon=Fraction(10**9), delta=ask.delta and Fraction(1, 2), neighbors=ask.events[0].neighbors)
    drawn = work(Meter({ask.account: ample}))
    return answered(ledger, ask, lambda _: drawn, **more)


def _read_first_for(kind: str) -> Any:
    """The same for one kind of job."""

    def answer(ledger: Any, ask: Any, work: Any, **more: Any) -> Any:
        return (_read_first if ask.question.startswith(kind) else answered)(ledger, ask, work, **more)

    return answer


_opened = Meter._open


def _few_bits(self: Meter, mechanism: Any, secret: Any) -> Any:
    """Exact numbers go into two bits, and what does not fit is told."""
    exact = _opened(self, mechanism, secret)
    if isinstance(exact, np.ndarray) and exact.max(initial=0) > 3:
        raise OverflowError("too large")
    return exact


@contextmanager
def _passed_on() -> Iterator[None]:
    with (
        mock.patch.object(Meter, "_open", _few_bits),
        mock.patch.object(meter, "attempt", all_but_overflow),
    ):
        yield


def _patched(target: Any, name: str, fault: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(target, name, fault)


FAULTS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], str]] = {
    "one cell less is told": (
        _patched(offer, "contribution_of", _fewer(cells=lambda many: many - 1, total=lambda _: 0)),
        "value .* moved by .* was proven",
    ),
    "one row less is told": (
        _patched(offer, "contribution_of", _fewer(each=lambda many: many - 1)),
        "value .* moved by .* was proven",
    ),
    "no bounds": (_patched(dense, "aggregate", _unbounded), "value .* moved by .* noise was made for"),
    "one cell too many": (_patched(dense, "aggregate", _many_cells), "cells moved by"),
    "a unit beyond its limits is not cut": (_patched(total_limit, "least_limit", _one_more), "rows count, and"),
    "an overflow is passed on": (_passed_on, "OverflowError has escaped"),
    "read before it is paid": (_patched(door, "answered", _read_first_for("PUBLISH")), "read 0 came after 0 charges"),
    "bought before it is paid": (_patched(door, "answered", _read_first_for("fact:")), "read 0 came after 0 charges"),
}
"""Each with what must be said about it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(worlds: dict[str, Worlds], fault: str) -> None:
    """Within the cases of one account: after how many is printed with -s."""
    plant, said = FAULTS[fault]
    with plant():
        for number in range(CASES):
            _, faults, _ = compared(worlds["pure"], case("pure", number, replace=False))
            seen = [one for one in faults if re.search(said, one)]
            if seen:
                print(f"{fault}: after {number} cases: {seen[0]}")
                return
    raise AssertionError(f"nobody saw it in {CASES} cases")
