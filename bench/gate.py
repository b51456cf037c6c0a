"""What one number through the gate costs: fit checked, account charged, Secret opened, noise drawn, Release made."""

import time
from collections.abc import Iterator
from fractions import Fraction

from bench.record import Bench, Row
from hubbub import Budget, Facts, Meter, Secret, Sensitivity
from hubbub.mechanisms import Gaussian, Geometric, Mechanism

RELEASES = 100
ROUNDS = 100
MOST_MICROSECONDS = 50


def _microseconds(mechanism: Mechanism, delta: Fraction) -> float:
    """The best round's mean: one release is too short for the clock."""
    meter = Meter({"study": Budget(epsilon=Fraction(10**6), delta=delta)})
    facts = Facts(account="study", sensitivity=Sensitivity(l0=1, linf=Fraction(1)))
    secret = Secret(41, facts)
    meter.measure(mechanism, secret)
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(RELEASES):
            meter.measure(mechanism, secret)
        rounds.append((time.perf_counter() - start) / RELEASES * 1e6)
    return min(rounds)


def run() -> Iterator[Row]:
    """A pure account with geometric noise, and a zCDP account with either."""
    geometric = Geometric(epsilon=Fraction(1, 10))
    gaussian = Gaussian.at(epsilon=Fraction(1, 10), delta=Fraction(1, 10**6))
    none, some = Fraction(0), Fraction(1, 10**6)
    cases: list[tuple[str, Mechanism, Fraction]] = [
        ("Geometric, account with δ = 0", geometric, none),
        ("Geometric, account with δ > 0", geometric, some),
        ("Gaussian, account with δ > 0", gaussian, some),
    ]
    for what, mechanism, delta in cases:
        spent = _microseconds(mechanism, delta)
        yield Row(
            what=what,
            figures={"µs a release": spent},
            target=f"< {MOST_MICROSECONDS} µs",
            holds=spent < MOST_MICROSECONDS,
        )


BENCH = Bench(
    name="gate",
    about="one scalar release through Meter.measure",
    run=run,
    steps=3,
    notes=(f"Mean of {RELEASES:,} releases, best of {ROUNDS} rounds.",),
)
