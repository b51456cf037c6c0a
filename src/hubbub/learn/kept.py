"""A fitted estimator as text, and back: what it learned, which is all public, and nothing else."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from hubbub.learn.bayes.score_calibration import Calibration
from hubbub.learn.estimator import FitClaim, Private

_BESIDE = ("_n_features_out",)
"""Learned, and not called like it."""


def learned_attributes(estimator: Private) -> dict[str, Any]:
    """Attributes by name, as JSON has words for them."""
    return {name: _as_json(value) for name, value in vars(estimator).items() if name.endswith("_") or name in _BESIDE}


def taught(estimator: Private, told: dict[str, Any]) -> Private:
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
