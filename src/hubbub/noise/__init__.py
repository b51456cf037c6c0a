"""Exact noise from a cryptographic generator: integers only, drawn from the very law that a proof names."""

from hubbub.noise import scattered
from hubbub.noise.bernoulli import (
    bernoulli,
    bernoulli_exp,
    bernoulli_for_each,
    uniform_below,
    uniform_digits,
    uniform_within,
)
from hubbub.noise.choice import choice, race
from hubbub.noise.counting import binomial, hypergeometric
from hubbub.noise.discrete import (
    discrete_gaussian,
    discrete_laplace,
    gaussian_for_each,
    geometric,
    laplace_for_each,
    truncated_laplace,
)
from hubbub.noise.rounded import rounded_laplace, rounded_student

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_for_each",
    "binomial",
    "choice",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_for_each",
    "geometric",
    "hypergeometric",
    "laplace_for_each",
    "race",
    "rounded_laplace",
    "rounded_student",
    "scattered",
    "truncated_laplace",
    "uniform_below",
    "uniform_digits",
    "uniform_within",
]
