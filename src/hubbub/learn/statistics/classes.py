"""The classes of a target, as declared or as enough people have them.

Privacy:
    Claim: bought classes cost their share of ρ, and a failure mass of at most half of δ.
    Proof: each unit names one class (that of its first row), and ``GaussianThreshold`` with the share's ρ shows the
        names whose noisy number of units reaches its threshold; ``Tuition.rho`` leaves half of δ for what may fail.
    Needs: labels whose types are declared with their array, or that are read one by one (``values``).
    Ref: Korolova, Kenthapadi, Mishra, Ntoulas 2009; SOUNDNESS 11.
"""

from collections import Counter
from collections.abc import Collection, Hashable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.secret import Sealed
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.labels import values_of
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms.keys.threshold import GaussianThreshold
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.totals import Code, Number, number

SHARE = Fraction(1, 20)
"""Of what is left of the price, for the names of the classes."""
_TYPED = "biufUS"
"""Types of arrays that say of every label what it is."""


def read_classes(classes: Any, *, delta: float) -> Array | None:
    """Return the declared classes in order; None where they are to be bought, which takes a ``delta``."""
    if classes is not None:
        found: Array = np.unique(np.asarray(classes))
        if found.ndim != 1 or len(found) != np.size(classes):
            raise ParameterError("classes", "a list of different labels", classes)
        return found
    if not delta:
        raise ParameterError(
            "classes", "the labels there are, e.g. classes=[0, 1] (a delta above 0 can buy them from the data)", classes
        )
    return None


def buy_classes(
    classes: Any, y: Array | None, data: Features, *, tuition: Tuition, share: Fraction = SHARE
) -> tuple[Array, Features]:
    """Return the classes in order, and rows with the places of theirs beside them; in an engine they are there."""
    found = choose_classes(classes, y, data, tuition=tuition, share=share)
    return found, data if y is None else data.beside(place_labels(y, found).astype(np.float64))


def choose_classes(
    classes: Any, y: Array | None, data: Features, *, tuition: Tuition, share: Fraction = SHARE
) -> Array:
    """Return the classes. Where none was shown, one constant of the labels' type stands for all."""
    known = read_classes(classes, delta=float(tuition.delta))
    if known is not None:
        return known
    crowd = data.here.crowd
    assert y is not None
    part, rho = tuition.spend(tuition.left * share), tuition.rho
    assert rho is not None
    mechanism = GaussianThreshold(epsilon=tuition.epsilon, delta=tuition.delta, rho=rho * part)
    shown = tuition.measure(
        mechanism, Sealed.later(lambda: count_names(y, crowd)), Sensitivity(l0=1, linf=Fraction(1)), grid=None,
        label="classes",
    )  # fmt: skip
    return _array_of(shown, y.dtype)


def count_names(y: Array, crowd: Crowd) -> dict[Hashable, int]:
    """Count the units that name each class; who has no label names none."""
    first = y
    if crowd.units is not None:
        codes, places = np.unique(crowd.units, return_index=True)
        first = y[places[codes >= 0]]
    if first.dtype.kind in _TYPED:
        names, counts = np.unique(first[first == first], return_counts=True)  # noqa: PLR0124
        return dict(zip(names.tolist(), counts.tolist(), strict=True))
    return dict(Counter(_name(value) for value in values_of(first) if value is not None))


def code_classes(data: Features, size: int, *, cell: Number | None = None) -> Code:
    """Code the class of each row, added to a cell where one is given; what is none of them counts nowhere."""
    code = data.y.fill_missing(-1.0)
    nowhere = number(-1.0).equal(code)
    if cell is None:
        return Code(number=code + nowhere * float(size + 1), size=size)
    return Code(number=(cell + code) * (number(1.0) - nowhere) + nowhere * float(size), size=size)


def place_labels(y: Array, classes: Array) -> Array:
    """Return the place of each label among the classes; −1 for what is none of them, which counts nowhere.

    A label is a class that it equals, or that is called the same: the text "1" is the class 1, and the other way round.
    Numbers in an array of numbers are compared all at once, and so are texts; other labels one by one, each by itself.
    """
    kinds = y.dtype.kind, classes.dtype.kind
    if all(kind in "biuf" for kind in kinds) or kinds in (("U", "U"), ("S", "S")):
        order = np.argsort(classes)
        place = order[np.clip(np.searchsorted(classes, y, sorter=order), 0, len(classes) - 1)]
        return np.where(classes[place] == y, place, -1)
    known = {value: place for place, value in enumerate(values_of(classes)) if value is not None}
    called = {_name_of(value): place for value, place in known.items()}
    texts = {value: place for value, place in known.items() if isinstance(value, str)}

    def place_of(value: Hashable | None) -> int:
        if value is None:
            return -1
        named = called.get(value, -1) if isinstance(value, str) else texts.get(_name_of(value), -1)
        return known.get(value, named)

    return np.array([place_of(value) for value in values_of(y)], dtype=np.int64)


def _name(value: Hashable) -> Hashable:
    """A number or a text as it is, and anything else by what it is called."""
    return value if isinstance(value, int | float) else _name_of(value)


def _name_of(value: Hashable) -> str:
    match value:
        case bytes():
            return value.decode("latin-1")
        case (str(), str(text)):  # dates and times
            return text
    return str(value)


def _array_of(shown: Collection[Hashable], kind: np.dtype[Any]) -> Array:
    """Return the names that are shown in an array of the declared type, or of one that follows from these names alone.

    An array of texts is as wide as the names that are shown: the longest of all labels may be private.
    """
    if kind.kind in _TYPED:
        held: Any = kind.type if kind.kind in "US" else kind
        return np.array(sorted(shown), dtype=held) if shown else np.zeros(1, dtype=held)  # type: ignore[type-var]
    names: list[Any] = list(shown)
    if not names or any(isinstance(name, str) for name in names):
        return np.unique(np.array([str(name) for name in names or [""]], dtype=np.str_))
    if all(isinstance(name, int) and abs(name) < 1 << 63 for name in names):
        return np.array(sorted(names), dtype=np.int64)
    if all(isinstance(name, float) or abs(name) <= 1 << 53 for name in names):
        return np.array(sorted(names), dtype=np.float64)
    return np.array(sorted(names), dtype=object)
