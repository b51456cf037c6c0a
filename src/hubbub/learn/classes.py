"""Which classes there are: as declared, or those that enough people have for their names to be shown.

Privacy:
    Claim: bought classes cost their share of ρ, and a failure mass of at most half of δ.
    Proof: each unit names one class (that of its first row), and ``GaussianThreshold`` with the share's ρ shows the
        names whose noisy number of units reaches its threshold; ``Tuition.rho`` leaves half of δ for what may fail.
    Needs: labels as public types, private values.
    Ref: Korolova, Kenthapadi, Mishra, Ntoulas 2009; SOUNDNESS 11.
"""

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learn.crowd import Array, Crowd
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms.threshold import GaussianThreshold
from hubbub.privacy.sensitivity import Sensitivity

SHARE = Fraction(1, 20)
"""Of what is left of the price, for the names of the classes."""


def classes_of(classes: Any, y: Array, *, crowd: Crowd, tuition: Tuition, share: Fraction = SHARE) -> Array:
    """The classes in order. Where none was shown, one constant of the labels' type stands for all."""
    if classes is not None:
        declared = np.unique(np.asarray(classes))
        if declared.ndim != 1 or len(declared) != np.size(classes):
            raise ParameterError("classes", "a list of different labels", classes)
        return declared
    if tuition.rho is None:
        raise ParameterError(
            "classes", "the labels there are, e.g. classes=[0, 1] (a delta above 0 can buy them from the data)", classes
        )
    part = tuition.spend(tuition.left * share)
    mechanism = GaussianThreshold(epsilon=tuition.epsilon, delta=tuition.delta, rho=tuition.rho * part)
    shown = tuition.measure(
        mechanism, units_of(y, crowd), Sensitivity(l0=1, linf=Fraction(1)), grid=None, label="classes"
    )
    # As wide as the names that are shown: an array of texts is as wide as its longest, and that one may be private.
    kind = _plain(y).dtype
    held = kind.type if kind.kind in "US" else kind
    found: Array = np.array(sorted(shown), dtype=held) if shown else np.zeros(1, dtype=held)
    return found


def units_of(y: Array, crowd: Crowd) -> dict[Hashable, int]:
    """How many units name each class; who has no label names none."""
    first = y
    if crowd.units is not None:
        codes, places = np.unique(crowd.units, return_index=True)
        first = y[places[codes >= 0]]
    known = np.array([one is not None and one == one for one in first.tolist()], dtype=bool)  # noqa: PLR0124
    names, counts = np.unique(_plain(first)[known], return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def codes_of(y: Array, classes: Array) -> Array:
    """The place of each label among the classes; −1 for what is none of them, which counts nowhere."""
    given, known = _plain(y), _plain(classes)
    if given.dtype.kind != known.dtype.kind and "U" in (given.dtype.kind, known.dtype.kind):
        given, known = given.astype(str), known.astype(str)
    order = np.argsort(known)
    place = order[np.clip(np.searchsorted(known, given, sorter=order), 0, len(known) - 1)]
    return np.where(known[place] == given, place, -1)


def _plain(labels: Array) -> Array:
    """Labels of any objects by what they are called, since objects of several kinds have no order."""
    return labels.astype(str) if labels.dtype == object else labels
