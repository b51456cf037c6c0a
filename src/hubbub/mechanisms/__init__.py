"""Mechanisms: frozen, calibrated, each with its claim and the proof of it in its docstring.

Each is loaded when its name is first used, so that whoever needs one does not wait for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.mechanisms.additive.gaussian import Gaussian
    from hubbub.mechanisms.additive.laplace import Geometric, TruncatedGeometric
    from hubbub.mechanisms.additive.reals import GridGaussian, Laplace
    from hubbub.mechanisms.additive.response import RandomizedResponse
    from hubbub.mechanisms.base import Mechanism, Needs
    from hubbub.mechanisms.keys.key_selection import (
        OptimalKeys,
        TruncatedThreshold,
        WeightedGaussianThreshold,
        select_keys,
    )
    from hubbub.mechanisms.keys.threshold import GaussianThreshold, LaplaceThreshold
    from hubbub.mechanisms.local_sensitivity.propose import ProposedQuantile, ProposeTestRelease, StableMode
    from hubbub.mechanisms.local_sensitivity.smooth import SmoothQuantile, SmoothSensitivity
    from hubbub.mechanisms.objective.objective import ObjectivePerturbation
    from hubbub.mechanisms.selection.bracket import QuantileBracket
    from hubbub.mechanisms.selection.extreme import Extreme
    from hubbub.mechanisms.selection.grouped import PerGroup
    from hubbub.mechanisms.selection.interval import IntervalExponential
    from hubbub.mechanisms.selection.price import Price
    from hubbub.mechanisms.selection.quantile import Quantile
    from hubbub.mechanisms.selection.quantiles import Quantiles
    from hubbub.mechanisms.selection.select import Exponential, NoisyMax, PermuteAndFlip, TopK
    from hubbub.mechanisms.sparse.sparse_cells import Nonzeros
    from hubbub.mechanisms.sparse.sparse_counts import SparseFirst, SparseLargest, SparseThreshold
    from hubbub.mechanisms.sparse.sparse_samples import SparsePriority, SparseSample
    from hubbub.mechanisms.sparse.sparse_vector import SparseVector
    from hubbub.mechanisms.staged.resolution import Resolution
    from hubbub.mechanisms.staged.staged import Staged

_HOMES = {
    "Exponential": "selection.select",
    "Extreme": "selection.extreme",
    "Gaussian": "additive.gaussian",
    "GaussianThreshold": "keys.threshold",
    "Geometric": "additive.laplace",
    "GridGaussian": "additive.reals",
    "IntervalExponential": "selection.interval",
    "Laplace": "additive.reals",
    "LaplaceThreshold": "keys.threshold",
    "Mechanism": "base",
    "Needs": "base",
    "NoisyMax": "selection.select",
    "Nonzeros": "sparse.sparse_cells",
    "ObjectivePerturbation": "objective.objective",
    "OptimalKeys": "keys.key_selection",
    "PerGroup": "selection.grouped",
    "PermuteAndFlip": "selection.select",
    "Price": "selection.price",
    "ProposeTestRelease": "local_sensitivity.propose",
    "ProposedQuantile": "local_sensitivity.propose",
    "Quantile": "selection.quantile",
    "QuantileBracket": "selection.bracket",
    "Quantiles": "selection.quantiles",
    "RandomizedResponse": "additive.response",
    "Resolution": "staged.resolution",
    "SmoothQuantile": "local_sensitivity.smooth",
    "SmoothSensitivity": "local_sensitivity.smooth",
    "SparseFirst": "sparse.sparse_counts",
    "SparseLargest": "sparse.sparse_counts",
    "SparsePriority": "sparse.sparse_samples",
    "SparseSample": "sparse.sparse_samples",
    "SparseThreshold": "sparse.sparse_counts",
    "SparseVector": "sparse.sparse_vector",
    "StableMode": "local_sensitivity.propose",
    "Staged": "staged.staged",
    "TopK": "selection.select",
    "TruncatedGeometric": "additive.laplace",
    "TruncatedThreshold": "keys.key_selection",
    "WeightedGaussianThreshold": "keys.key_selection",
    "select_keys": "keys.key_selection",
}
"""Each name, and the module here that defines it. The block above says the same to type checkers, and a test holds the
two together."""

__all__ = [
    "Exponential",
    "Extreme",
    "Gaussian",
    "GaussianThreshold",
    "Geometric",
    "GridGaussian",
    "IntervalExponential",
    "Laplace",
    "LaplaceThreshold",
    "Mechanism",
    "Needs",
    "NoisyMax",
    "Nonzeros",
    "ObjectivePerturbation",
    "OptimalKeys",
    "PerGroup",
    "PermuteAndFlip",
    "Price",
    "ProposeTestRelease",
    "ProposedQuantile",
    "Quantile",
    "QuantileBracket",
    "Quantiles",
    "RandomizedResponse",
    "Resolution",
    "SmoothQuantile",
    "SmoothSensitivity",
    "SparseFirst",
    "SparseLargest",
    "SparsePriority",
    "SparseSample",
    "SparseThreshold",
    "SparseVector",
    "StableMode",
    "Staged",
    "TopK",
    "TruncatedGeometric",
    "TruncatedThreshold",
    "WeightedGaussianThreshold",
    "select_keys",
]


def __getattr__(name: str) -> Any:
    """Load a name from the module that defines it, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hubbub.mechanisms' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"hubbub.mechanisms.{home}"), name)
    return value


def __dir__() -> list[str]:
    """List the public names beside what is loaded."""
    return sorted({*globals(), *__all__})
