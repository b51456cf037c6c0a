"""Sensitivities: what is refused, and what known bounds imply in other norms."""

from fractions import Fraction
from typing import Any, cast

import pytest

from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Norm, Sensitivity


def test_bad_bounds_are_refused() -> None:
    with pytest.raises(ParameterError, match="bounded in at least one norm"):
        Sensitivity()
    for name in ("l1", "l2_squared", "linf"):
        with pytest.raises(ParameterError, match=f"{name} must be a positive number"):
            Sensitivity(**dict.fromkeys([name], cast(Any, 0)))
    for name in ("l0", "rows", "weighted"):
        with pytest.raises(ParameterError, match=f"{name} must be a whole number at least 1"):
            Sensitivity(**dict.fromkeys([name], cast(Any, 0)))


def test_scores_move_either_way_unless_it_is_said() -> None:
    assert not Sensitivity(linf=Fraction(1)).monotone
    assert Sensitivity(linf=Fraction(1), monotone=True).monotone


def test_bounds_are_taken_exactly() -> None:
    for name in ("l1", "l2_squared", "linf"):
        bound = getattr(Sensitivity(**dict.fromkeys([name], cast(Any, 0.1))), name)
        assert isinstance(bound, Fraction)
        assert bound == Fraction(0.1)
    for name in ("l0", "rows", "weighted"):
        assert getattr(Sensitivity(**dict.fromkeys([name], cast(Any, 1))), name) == 1


@pytest.mark.parametrize(
    ("known", "norm", "bound"),
    [
        ({"l0": 3, "linf": 2}, Norm.L1, 6),
        ({"l0": 3, "linf": 2, "l1": 5}, Norm.L1, 5),
        ({"l0": 3, "linf": 2, "l1": 7}, Norm.L1, 6),
        ({"l0": 3, "linf": 2}, Norm.L2, 12),
        ({"l1": 5}, Norm.L2, 25),
        ({"l1": 5, "linf": 2}, Norm.L2, 10),
        ({"l1": 5, "linf": 2, "l2_squared": 9}, Norm.L2, 9),
        ({"l1": 5, "linf": 2, "l2_squared": 11}, Norm.L2, 10),
        ({"linf": 2}, Norm.L2, None),
        ({"linf": 2}, Norm.L1, None),
        ({"l0": 2}, Norm.L1, None),
        ({"l1": 5}, Norm.SCORE, 5),
        ({"l1": 5, "linf": 2}, Norm.SCORE, 2),
        ({"rows": 4}, Norm.ROWS, 4),
        ({"l1": 4}, Norm.ROWS, None),
        ({"l0": 4, "linf": 1}, Norm.UNITS, 4),
        ({"l0": 4, "linf": Fraction(3, 2)}, Norm.UNITS, None),
        ({"l0": 4}, Norm.UNITS, None),
        ({"linf": 1}, Norm.UNITS, None),
        ({"weighted": 7}, Norm.WEIGHTS, 7),
        ({"l0": 7, "linf": 1}, Norm.WEIGHTS, None),
        ({"l1": 1}, Norm.REPORT, 1),
    ],
)
def test_known_bounds_imply_others(known: dict[str, Any], norm: Norm, bound: int | None) -> None:
    assert Sensitivity(**known).in_norm(norm) == bound
