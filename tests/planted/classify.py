"""Bugs in linear classifiers: in what a noisy objective costs, and in what bounds a row and a person."""

from typing import Any

import numpy as np

from hubbub.engines.arrays import blocks
from hubbub.learn.bayes import bayes
from hubbub.learn.linear import gradients as pulls
from hubbub.learn.statistics import classes
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.row_steps import BITS
from hubbub.mechanisms.objective import objective
from tests.planted.plant import Caught, Planted, in_place, named, specimen


def _flat(**_: Any) -> float:
    return 0.0


def _as_long_as_they_are(values: Array, *, bits: int = BITS) -> Array:
    return np.trunc(np.clip(values, -1, 1) * 1.25 * (1 << bits)).astype(np.int64)


def _longer_in_place(rows: Array, most: float, weights: Array | None, *, out: Array, room: Array) -> Array:
    out[:] = np.trunc(np.clip(rows, -1, 1) * 1.25 * most)
    return out


_honest_classes = classes.buy_classes


def _as_wide_as_all(declared: Any, y: Array, data: Any, **given: Any) -> Any:
    found, rows = _honest_classes(declared, y, data, **given)
    return found.astype(y.dtype), rows


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
        patch=in_place(blocks, "shorten", _longer_in_place),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="classes as wide as a private one",
        about="The array of bought classes has the type of all labels: it is as wide as the longest, shown or not.",
        subject=named("learn: GaussianNB, classes bought, gaussian"),
        patch=in_place(bayes, "buy_classes", _as_wide_as_all),
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
