"""Publish a histogram, ranges or marginals once, and answer many questions from it."""

from hubbub.publish import sparse, spatial
from hubbub.publish.domain import Axis, Domain, bins
from hubbub.publish.marginals.allocation import Least
from hubbub.publish.marginals.consistency import reconcile
from hubbub.publish.marginals.cube import Cube
from hubbub.publish.marginals.cube_release import CubeRelease, run_cube
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.marginal_release import MarginalRelease, run_table
from hubbub.publish.marginals.marginals import Marginals
from hubbub.publish.marginals.records import Counted, Records
from hubbub.publish.release.prospect import Prospect
from hubbub.publish.release.published import Estimate, Published
from hubbub.publish.release.saved import load
from hubbub.publish.run import run
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.fourier import Fourier
from hubbub.publish.strategies.hierarchy import Hierarchy
from hubbub.publish.strategies.matrix import Matrix
from hubbub.publish.strategies.nested import Level
from hubbub.publish.strategies.rounded_matrix import Rounded
from hubbub.publish.strategies.sensing import Sensing, SensingError, sensing_errors
from hubbub.publish.strategies.sketch import CountSketch, JohnsonLindenstrauss, distance_squared
from hubbub.publish.strategies.topdown import TopDown, topdown
from hubbub.publish.strategies.wavelet import Wavelet
from hubbub.publish.terms import Contribution, Noise, Terms
from hubbub.publish.workload.expected_error import Expected
from hubbub.publish.workload.listed_queries import Boxes, Explicit
from hubbub.publish.workload.products import Product, Union, all_marginals, all_ranges, one_marginal
from hubbub.publish.workload.workload import EachCell, Prefixes, Ranges, Total, Workload

__all__ = [
    "Axis",
    "Boxes",
    "Contribution",
    "CountSketch",
    "Counted",
    "Cube",
    "CubeRelease",
    "Domain",
    "EachCell",
    "Estimate",
    "Expected",
    "Explicit",
    "Flat",
    "Fourier",
    "Hierarchy",
    "JohnsonLindenstrauss",
    "Least",
    "Level",
    "Marginal",
    "MarginalRelease",
    "Marginals",
    "Matrix",
    "Noise",
    "Prefixes",
    "Product",
    "Prospect",
    "Published",
    "Ranges",
    "Records",
    "Rounded",
    "Sensing",
    "SensingError",
    "Terms",
    "TopDown",
    "Total",
    "Union",
    "Wavelet",
    "Workload",
    "all_marginals",
    "all_ranges",
    "bins",
    "distance_squared",
    "load",
    "one_marginal",
    "reconcile",
    "run",
    "run_cube",
    "run_table",
    "sensing_errors",
    "sparse",
    "spatial",
    "topdown",
]
