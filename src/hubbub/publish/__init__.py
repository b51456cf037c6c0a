"""Publish a histogram, ranges or marginals once, and answer many questions from it."""

from hubbub.publish import sparse, spatial
from hubbub.publish.allocation import Least
from hubbub.publish.consistency import reconcile
from hubbub.publish.contribution import Contribution
from hubbub.publish.cube import Cube
from hubbub.publish.cube_release import CubeRelease, run_cube
from hubbub.publish.domain import Axis, Domain, bins
from hubbub.publish.expected import Expected
from hubbub.publish.flat import Flat
from hubbub.publish.fourier import Fourier
from hubbub.publish.hierarchy import Hierarchy
from hubbub.publish.listed import Boxes, Explicit
from hubbub.publish.marginal_release import Marginal, MarginalRelease, run_table
from hubbub.publish.marginals import Marginals
from hubbub.publish.matrix import Matrix
from hubbub.publish.nested import Level
from hubbub.publish.products import Product, Union, all_marginals, all_ranges, one_marginal
from hubbub.publish.prospect import Prospect
from hubbub.publish.published import Estimate, Published
from hubbub.publish.records import Counted, Records
from hubbub.publish.rounded_matrix import Rounded
from hubbub.publish.run import run
from hubbub.publish.saved import load
from hubbub.publish.sensing import Sensing, SensingError, sensing_errors
from hubbub.publish.sketch import CountSketch, JohnsonLindenstrauss, distance_squared
from hubbub.publish.terms import Noise, Terms
from hubbub.publish.topdown import TopDown, topdown
from hubbub.publish.wavelet import Wavelet
from hubbub.publish.workload import EachCell, Prefixes, Ranges, Total, Workload

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
