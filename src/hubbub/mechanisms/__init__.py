"""Mechanisms: frozen, calibrated, each with its claim and the proof of it in its docstring."""

from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric, TruncatedGeometric
from hubbub.mechanisms.additive.reals import GridGaussian, Laplace
from hubbub.mechanisms.additive.response import RandomizedResponse
from hubbub.mechanisms.base import Mechanism, Needs
from hubbub.mechanisms.keys.key_selection import OptimalKeys, TruncatedThreshold, WeightedGaussianThreshold, select_keys
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
