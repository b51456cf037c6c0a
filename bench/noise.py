"""How fast exact noise is: beside OpenDP's, which is exact too, and NumPy's, which is neither exact nor secret."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.clock import best
from bench.record import Bench, MissingInput, Row
from hubbub import noise

SIZE = 1_000_000
OPENDP_SIZE = 20_000
SCALES = (1, 10, 100, 1000, 1_000_000)
ROUNDS = 25


def _opendp(kind: str, scale: int) -> Callable[[list[int]], Any]:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingInput('Needs OpenDP to compare with. Run: pip install "hubbub[bench]"') from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    made: Callable[[list[int]], Any]
    if kind == "Laplace":
        made = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    else:
        made = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(scale))
    return made


def _ours(kind: str, scale: int) -> Callable[[], object]:
    if kind == "Laplace":
        return partial(noise.discrete_laplace, scale=scale, size=SIZE)
    return partial(noise.discrete_gaussian, sigma=scale, size=SIZE)


def _numpy(kind: str, scale: int) -> Callable[[], object]:
    generator = np.random.default_rng(1)
    return partial(generator.laplace if kind == "Laplace" else generator.normal, scale=scale, size=SIZE)


def run() -> Iterator[Row]:
    """Laplace, then Gaussian, at each scale."""
    zeros = [0] * OPENDP_SIZE
    for kind in ("Laplace", "Gaussian"):
        for scale in SCALES:
            ours = _ours(kind, scale)
            ours()  # tables are made on the first draw
            sides: dict[str, Callable[[], object]] = {
                "ours": ours,
                "opendp": partial(_opendp(kind, scale), zeros),
                "numpy": _numpy(kind, scale),
            }
            seconds = best(sides, rounds=ROUNDS)
            yield _row(kind, scale, seconds)


def _row(kind: str, scale: int, seconds: dict[str, float]) -> Row:
    per_opendp = seconds["opendp"] / OPENDP_SIZE * SIZE / seconds["ours"]
    per_numpy = seconds["numpy"] / seconds["ours"]
    least = 90 if kind == "Laplace" else 100
    return Row(
        what=f"discrete {kind}, scale {scale:,}",
        figures={
            "ours, M/s": SIZE / seconds["ours"] / 1e6,
            "OpenDP, M/s": OPENDP_SIZE / seconds["opendp"] / 1e6,
            "NumPy, M/s": SIZE / seconds["numpy"] / 1e6,
            "times OpenDP": per_opendp,
            "times NumPy": per_numpy,
        },
        target=f"≥ {least}× OpenDP and ≥ NumPy",
        holds=per_opendp >= least and per_numpy >= 1,
    )


BENCH = Bench(
    name="noise",
    about="exact noise, a million samples at a time",
    run=run,
    steps=2 * len(SCALES),
    notes=(
        f"OpenDP: vectors of integers, {OPENDP_SIZE:,} at a time. NumPy: Generator.laplace and .normal.",
        f"Best of {ROUNDS} rounds in which the sides took turns.",
    ),
)
