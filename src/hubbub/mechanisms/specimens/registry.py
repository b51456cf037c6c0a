"""One specimen of every mechanism: what the conformance suite, the docs and the audit command go through.

A specimen is calibrated at an ε that an audit of ten thousand draws can see, with the pair of neighbouring inputs on
which it loses most and a twin that really loses 1.25 times what it claims. A mechanism that is not here is not
finished.

Names are listed here, so that they can be shown without calibrating anything; a family is built when one of its
specimens is asked for.
"""

from functools import cache
from importlib import import_module

from hubbub.errors import ParameterError
from hubbub.mechanisms.specimens.specimen import Specimen

# Module of this package → the names of what its ``build`` returns, in the same order (a test compares them).
_FAMILIES: dict[str, tuple[str, ...]] = {
    "additive": (
        "geometric",
        "geometric, replace-one",
        "truncated geometric",
        "laplace",
        "gaussian",
        "grid gaussian",
        "randomized response, basic",
        "randomized response",
    ),
    "selection": (
        "exponential",
        "exponential, monotone",
        "exponential, prior",
        "exponential over intervals",
        "permute-and-flip",
        "noisy max",
        "top-k",
        "quantile",
        "quantiles",
        "quantile bracket",
    ),
    "keys": (
        "laplace threshold",
        "laplace threshold, shared key",
        "gaussian threshold",
        "truncated threshold",
        "optimal keys",
        "weighted gaussian threshold",
    ),
    "sparse_vector": (
        "sparse vector",
        "sparse vector, monotone",
        "sparse vector, two above",
        "sparse vector, renewed",
        "sparse vector, numbers",
    ),
    "distance": (
        "smooth sensitivity",
        "smooth sensitivity, cauchy",
        "smooth sensitivity, laplace",
        "smooth median",
        "propose-test-release",
        "proposed median",
        "stable mode",
        "stable mode, replace-one",
        "price",
        "price, exponential",
    ),
    "grouped": ("extreme", "per group"),
    "blocks": ("block mean", "block mean, replaced", "block median"),
    "resolution": ("resolution",),
    "staged": ("staged sums", "private cut", "private contrast", "private split"),
    "scattered": (
        "sparse threshold",
        "sparse largest",
        "sparse sample",
        "sparse priority",
        "sparse vector over cells",
    ),
    "objective": ("objective perturbation", "objective perturbation, gaussian"),
}

SPECIMENS: tuple[str, ...] = tuple(name for names in _FAMILIES.values() for name in names)
"""The name of every specimen."""


@cache
def _build(family: str) -> tuple[Specimen, ...]:
    built: tuple[Specimen, ...] = import_module(f"hubbub.mechanisms.specimens.{family}").build()
    return built


def find_specimen(name: str) -> Specimen:
    """Build the specimen of this name, with its family."""
    for family, names in _FAMILIES.items():
        if name in names:
            return next(specimen for specimen in _build(family) if specimen.name == name)
    raise ParameterError("name", "the name of a specimen", name)


def build_specimens() -> tuple[Specimen, ...]:
    """Build every specimen, in the order of their names."""
    return tuple(specimen for family in _FAMILIES for specimen in _build(family))
