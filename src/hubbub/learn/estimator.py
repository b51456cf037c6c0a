"""The base of every private estimator: scikit-learn's conventions, a price, and what it learned as text.

scikit-learn is imported here and below ``hubbub.learn`` only (``pip install "hubbub[learn]"``).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from hubbub.errors import LearningWarning, ParameterError
from hubbub.learn.advice import explain_parameters, warn_of_callers, warn_of_useless
from hubbub.learn.bayes.score_calibration import Calibration
from hubbub.learn.statistics.cells import Array, column, table
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.noise import entropy
from hubbub.parameters import interval

_BESIDE = ("_n_features_out",)
"""Learned, and not called like it."""


def learned_attributes(estimator: "Private") -> dict[str, Any]:
    """Attributes by name, as JSON has words for them."""
    return {name: _as_json(value) for name, value in vars(estimator).items() if name.endswith("_") or name in _BESIDE}


def taught(estimator: "Private", told: dict[str, Any]) -> "Private":
    """An estimator that has learned this."""
    for name, value in told.items():
        setattr(estimator, name, _heard(value))
    return estimator


def plain(value: Any) -> Any:
    """A parameter as it stands in a question."""
    if isinstance(value, np.ndarray | np.generic | list | tuple):
        listed = value.tolist() if isinstance(value, np.ndarray | np.generic) else list(value)
        return [plain(one) for one in listed] if isinstance(listed, list) else listed
    return value if value is None or isinstance(value, bool | int | float | str) else json.loads(json.dumps(value))


def _as_json(value: Any) -> Any:
    if isinstance(value, FitClaim | Calibration):
        return {type(value).__name__: asdict(value)}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": "object" if value.dtype == object else value.dtype.str}
    return value.item() if isinstance(value, np.generic) else value


def _heard(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["type"])
    ((called, fields),) = value.items()
    if called == Calibration.__name__:
        return Calibration(**fields)
    return FitClaim(**{**fields, "measured": tuple(fields["measured"])})


FAR = 1e150
"""Bounds beyond this have squares that no float holds: what follows would be NaN, and fail after the charge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitClaim:
    """The guarantee of a fit and what it measured, for a person and for a certificate."""

    epsilon: float
    delta: float
    unit: str
    measured: tuple[str, ...]
    excess: str
    useless: bool = False
    """Whether the noise is as large as what was to be learned: no better than chance."""

    def __str__(self) -> str:
        price = f"ε = {self.epsilon:.6g}" + (f", δ = {self.delta:.3g}" if self.delta else "")
        measured = ", ".join(_shortly(self.measured)) or "nothing"
        return f"{price} for each {self.unit}; measured: {measured}. {self.excess}".strip()


def _shortly(measured: tuple[str, ...]) -> Iterator[str]:
    """Runs of measurements that cost the same and are called the same, but for a number at the end, as one."""

    def kind(one: str) -> tuple[str, str]:
        label, _, price = one.partition(" (")
        return label.rstrip("0123456789"), price

    for (_, price), run in groupby(measured, key=kind):
        alike = [one.partition(" (")[0] for one in run]
        if len(alike) == 1:
            yield f"{alike[0]} ({price}"
        else:
            yield f"{alike[0]} … {alike[-1].rsplit(' ', 1)[-1]} (each {price}"


class Private(BaseEstimator):  # type: ignore[misc]
    """The base of all estimators here. A subclass's ``__init__`` only stores its parameters, as scikit-learn wants.

    Parameters that all of them have: ``epsilon`` (1.0), ``delta``, ``bounds`` ((low, high), or a pair of arrays with
    one number a column; None buys them from the budget), ``max_rows`` (with ``groups``: a person counts for at most so
    many rows), ``meter`` and ``account`` (who pays; None: this fit alone), ``random_state`` (refused: noise that
    somebody can repeat protects nobody).
    """

    epsilon: float
    delta: float
    bounds: Any
    max_rows: int
    meter: Any
    account: str
    random_state: Any

    claim_: FitClaim

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explain_parameters(cls.__init__)  # type: ignore[method-assign]

    def _keep(self, given: dict[str, Any]) -> None:
        """Store the parameters of ``__init__``, its ``locals()``, under their own names, as scikit-learn wants."""
        self.__dict__.update((name, value) for name, value in given.items() if name != "self")

    def _check(self, *, width: int, grouped: bool) -> None:
        """Refuse parameters that cannot be, for so many columns: all of it before anything is paid."""
        column_bounds(self.bounds, columns=width)

    def _study(self, work: Callable[[Features, Tuition], str], data: Features) -> Self:
        """Check what is public, run what looks at rows (``Tuition.guard``), and state the claim.

        ``work`` returns a sentence that says what error to expect, from public numbers.
        """
        if self.random_state is not None and not entropy.is_substituted():
            raise ParameterError(
                "random_state",
                "None: noise that can be repeated protects nobody (tests: hubbub.testing)",
                self.random_state,
            )
        tuition = Tuition.at(
            epsilon=self.epsilon,
            delta=self.delta,
            meter=self.meter,
            account=self.account or ACCOUNT,
            guards=data.memory is not None,
        )
        self._check(width=data.width, grouped=not data.single)
        if data.memory is not None:
            warn_of_callers(tuition.price)

        def learn() -> FitClaim:
            self.claim_ = _claim(work(data, tuition), tuition, data)
            if data.memory is not None:
                self.warn_of_claim()
            return self.claim_

        self.claim_ = tuition.guard(learn)
        return self

    def warn_of_claim(self) -> None:
        """Warn where the claim says that nothing was learned. Where warnings are errors the fit, once paid, is kept."""
        if self.claim_.useless:
            with suppress(LearningWarning):
                warn_of_useless(type(self).__name__, self.claim_.excess)

    def _data(self, x: Any, groups: Any) -> Features:
        """Read rows to learn from, and whose they are; what is in an engine stays there, and its columns have names."""
        if isinstance(x, Features):
            self.n_features_in_, self.feature_names_in_ = x.width, np.array(x.names, dtype=object)
            return x
        cells = self._features(x, reset=True)
        return Features.of(cells, Crowd.of(groups, rows=len(cells), most=self.max_rows))

    def _features(self, x: Any, *, reset: bool = False) -> Array:
        """Read floats in two dimensions; what is no finite number passes, for the bounds to deal with."""
        cells = table(x)
        validate_data(self, x if hasattr(x, "columns") else cells, reset=reset, skip_check_array=True)
        return cells

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 (scikit-learn's name)
        shown = super().__repr__(N_CHAR_MAX)
        name, _, rest = shown.partition("(")
        return (
            f"{name}({rest}" if "epsilon=" in rest else f"{name}(epsilon={self.epsilon!r}{', ' * (rest != ')')}{rest}"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # as cells that are missing: an error because of a text would tell of it
        tags.non_deterministic = True
        return tags


def _claim(excess: str, tuition: Tuition, data: Features) -> FitClaim:
    """State what a fit guarantees, from what it measured."""
    most = "1 row" if data.most == 1 else f"{data.most} rows"
    unit = "row" if data.single else f"group, which counts for at most {most}"
    measured = tuple(
        f"{release.label} ({type(release.mechanism).__name__}, {release.loss})" for release in tuition.releases
    )
    return FitClaim(
        epsilon=float(tuition.epsilon), delta=float(tuition.delta), unit=unit, measured=measured, excess=excess,
        useless=bool(tuition.useless),
    )  # fmt: skip


def column_bounds(bounds: Any, *, columns: int) -> tuple[Array, Array] | None:
    """(low, high) as two arrays with one number a column; None where they are to be bought."""
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        raise ParameterError("bounds", "(low, high), each a number or one number a column", bounds)
    low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), (columns,)) for side in bounds)
    for one, other in zip(low.tolist(), high.tolist(), strict=True):
        interval("bounds", (one, other))
        if max(-one, other) > FAR:
            raise ParameterError("bounds", f"within ±{FAR:g}, so that squares are numbers too", (one, other))
    return low.copy(), high.copy()


def read_labels(y: Any, data: Features) -> Array | None:
    """Read labels as a flat array, one for each row; only their number and type are checked. None in an engine."""
    if data.memory is None:
        return None
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    return column(y, name="y", rows=len(data.memory.table))
