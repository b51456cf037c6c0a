"""Known figures of composition at δ = 1e-6, computed through our own Events."""

import time
from collections.abc import Iterator
from fractions import Fraction

from bench.record import Bench, Row
from hubbub.privacy import Event, epsilon_of
from hubbub.privacy.accountant import Method
from hubbub.privacy.events.event import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    RepeatedEvent,
)

DELTA = Fraction(1, 10**6)
CLOSE = 2e-5


def _plans() -> list[tuple[str, Event, int, Method, float]]:
    laplace, gaussian = LaplaceEvent(scale=Fraction(100)), GaussianEvent(sigma=Fraction(10))
    sampled = PoissonSampledEvent(event=GaussianEvent(sigma=Fraction(1)), rate=Fraction(1, 100))
    return [
        ("1,000 × Laplace(ε = 0.01)", laplace, 1_000, "pld", 1.36292463),
        ("1,000 × Laplace(ε = 0.01)", laplace, 1_000, "rdp", 1.46584182),
        ("100 × Gaussian(σ = 10)", gaussian, 100, "pld", 4.88655412),
        ("100 × Gaussian(σ = 10)", gaussian, 100, "rdp", 5.22153963),
        ("10,000 × sampled Gaussian(q = 0.01, σ = 1)", sampled, 10_000, "pld", 6.90741949),
        ("10,000 × sampled Gaussian(q = 0.01, σ = 1)", sampled, 10_000, "rdp", 7.41410087),
        ("1,000 × discrete Laplace(1/100)", DiscreteLaplaceEvent(scale=Fraction(100)), 1_000, "pld", 1.36544671),
        ("100 × discrete Gaussian(σ = 10)", DiscreteGaussianEvent(sigma=Fraction(10)), 100, "pld", 4.88710216),
    ]


def run() -> Iterator[Row]:
    """Fixed plans, by the distribution of the loss and by Rényi curves."""
    for what, event, count, method, known in _plans():
        start = time.perf_counter()
        found = epsilon_of([RepeatedEvent(event=event, count=count)], delta=DELTA, method=method)
        seconds = time.perf_counter() - start
        yield Row(
            what=f"{what}, {method.upper()}",
            figures={"ε at δ = 1e-6": found, "known": known, "seconds": seconds},
            target=f"known ± {CLOSE:g}",
            holds=abs(found / known - 1) <= CLOSE,
        )


BENCH = Bench(
    name="accounting",
    about="figures of composition through our Events",
    run=run,
    steps=8,
    notes=("Known: dp-accounting 0.6.0 called directly. The target is relative. PLD and RDP describe fixed plans.",),
)
