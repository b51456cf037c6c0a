"""What an account's hundred-thousandth charge costs: as much as the first, for a filter remembers three numbers."""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import repeat

from bench.record import Bench, Row
from hubbub.privacy import Event
from hubbub.privacy.events.event import DiscreteLaplaceEvent, GaussianEvent
from hubbub.privacy.filter import FamilyFilter, Filter, PureFilter, Spent

DELTA = Fraction(1, 10**6)
CHARGES = 100_000
BLOCK = 1_000
MOST = 1.5


def _charges(account: Filter, events: Callable[[], Iterator[Event]]) -> dict[str, float]:
    """Microseconds a charge: the second thousand (the first warms up) and the last thousand of a hundred thousand."""
    spent, blocks = Spent(), []
    queue = events()
    for _ in range(CHARGES // BLOCK):
        block = [next(queue) for _ in range(BLOCK)]
        start = time.perf_counter()
        for event in block:
            spent = account.spend(spent, account.charge_of(event))
        blocks.append((time.perf_counter() - start) / BLOCK * 1e6)
    early, late = min(blocks[1:6]), min(blocks[-5:])
    return {"µs, early": early, "µs, late": late, "late / early": late / early}


def _fresh() -> Iterator[Event]:
    """No two alike, so that nothing can be remembered."""
    scale = 1_000
    while True:
        yield GaussianEvent(sigma=Fraction(scale))
        scale += 1


def _same() -> Iterator[Event]:
    return repeat(DiscreteLaplaceEvent(scale=Fraction(1_000)))


def run() -> Iterator[Row]:
    """Accounts of both kinds, with an event they have seen before and with events they have not."""
    much = Fraction(10**9)
    cases: list[tuple[str, Filter, Callable[[], Iterator[Event]]]] = [
        ("pure filter, the same event", PureFilter(epsilon=much), _same),
        ("zCDP filter, the same event", FamilyFilter(epsilon=much, delta=DELTA), _same),
        ("zCDP filter, no two alike", FamilyFilter(epsilon=much, delta=DELTA), _fresh),
    ]
    for what, account, events in cases:
        figures = _charges(account, events)
        yield Row(
            what=what,
            figures=figures,
            target=f"late / early ≤ {MOST:g}",
            holds=figures["late / early"] <= MOST,
        )


BENCH = Bench(
    name="charges",
    about=f"what a charge costs early and late among {CHARGES:,}",
    run=run,
    steps=3,
    notes=("Early: charges 1,001 to 6,000; late: the last 5,000; each the best block of 1,000.",),
)
