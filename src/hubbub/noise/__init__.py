"""Exact noise from a cryptographic generator: integers only, drawn from the very law that a proof names."""

from hubbub.noise.bernoulli import bernoulli, bernoulli_exp, uniform_below, uniform_digits, uniform_within
from hubbub.noise.choice import choice, race
from hubbub.noise.counting import binomial, hypergeometric
from hubbub.noise.discrete import discrete_gaussian, discrete_laplace, geometric

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "binomial",
    "choice",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "hypergeometric",
    "race",
    "uniform_below",
    "uniform_digits",
    "uniform_within",
]
