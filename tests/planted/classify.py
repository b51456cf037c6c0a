"""Bugs in linear classifiers: in what a noisy objective costs, and in what bounds a row and a person."""

from typing import Any

import numpy as np

from hubbub.learn import ball, bayes, classes, pulls
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.learn.steps import BITS, Steps, in_ball
from hubbub.mechanisms import objective
from tests.planted.plant import Caught, Planted, in_place, named, specimen


def _flat(**_: Any) -> float:
    return 0.0


def _as_long_as_they_are(values: Array, *, bits: int = BITS) -> Steps:
    kept = in_ball(values, bits=bits)
    longer = np.trunc(np.clip(values, -1, 1) * 1.25 * (1 << bits)).astype(np.int64)
    return Steps(parts=longer, grid=kept.grid, l1=kept.l1, l2_squared=kept.l2_squared, linf=kept.linf)


def _longer_in_place(block: Array, *, bits: int, weights: Array | None) -> Array:
    block[:] = np.trunc(np.clip(block, -1, 1) * 1.25 * (1 << bits))
    return block


_honest_classes = classes.classes_of


def _as_wide_as_all(declared: Any, y: Array, **given: Any) -> Array:
    return _honest_classes(declared, y, **given).astype(y.dtype)


def _one_each(crowd: Crowd) -> Array:
    return np.ones(crowd.rows)


CLASSIFY: tuple[Planted, ...] = (
    Planted(
        name="objective perturbation without the Hessian",
        about="The noise pays for the gradient alone, and the change of the determinant is free.",
        subject=specimen("objective perturbation"),
        patch=in_place(objective, "bend_rounded_up", _flat),
        caught=Caught.MASSES,
    ),
    Planted(
        name="logistic regression on rows that are too long",
        about="The intercept is added after rows were shortened, so that they are longer than was proven.",
        subject=named("learn: LogisticRegression"),
        patch=in_place(ball, "shortened", _longer_in_place),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="classes as wide as a private one",
        about="The array of bought classes has the type of all labels: it is as wide as the longest, shown or not.",
        subject=named("learn: GaussianNB, classes bought, gaussian"),
        patch=in_place(bayes, "classes_of", _as_wide_as_all),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a perceptron whose rows all count in full",
        about="A person with seven rows pulls with all of them where two were paid for.",
        subject=named("learn: Perceptron, people, gaussian"),
        patch=in_place(Crowd, "weights", property(_one_each)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a perceptron that pulls harder than 1",
        about="How strongly a row pulls is not clipped.",
        subject=named("learn: Perceptron"),
        patch=in_place(pulls, "in_ball", _as_long_as_they_are),
        caught=Caught.REPLAY,
    ),
)
