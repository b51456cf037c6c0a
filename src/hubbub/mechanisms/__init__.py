"""Mechanisms: frozen, calibrated, each with its claim and the proof of it in its docstring."""

from hubbub.mechanisms.base import Mechanism, Needs
from hubbub.mechanisms.extreme import Extreme
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.grouped import PerGroup
from hubbub.mechanisms.interval import IntervalExponential
from hubbub.mechanisms.keys import OptimalKeys, TruncatedThreshold, WeightedGaussianThreshold, select_keys
from hubbub.mechanisms.laplace import Geometric, TruncatedGeometric
from hubbub.mechanisms.objective import ObjectivePerturbation
from hubbub.mechanisms.price import Price
from hubbub.mechanisms.propose import ProposedQuantile, ProposeTestRelease, StableMode
from hubbub.mechanisms.quantile import Quantile
from hubbub.mechanisms.quantiles import Quantiles
from hubbub.mechanisms.reals import GridGaussian, Laplace
from hubbub.mechanisms.resolution import Resolution
from hubbub.mechanisms.response import RandomizedResponse
from hubbub.mechanisms.select import Exponential, NoisyMax, PermuteAndFlip, TopK
from hubbub.mechanisms.smooth import SmoothQuantile, SmoothSensitivity
from hubbub.mechanisms.sparse_cells import Nonzeros
from hubbub.mechanisms.sparse_counts import SparseLargest, SparseThreshold
from hubbub.mechanisms.sparse_first import SparseFirst
from hubbub.mechanisms.sparse_samples import SparsePriority, SparseSample
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.mechanisms.staged import Staged
from hubbub.mechanisms.threshold import GaussianThreshold, LaplaceThreshold

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
