"""Kinds: ranges belong to integers, and say how many bits they need."""

import pytest

from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of


def test_integers_have_a_range_and_nothing_else_has() -> None:
    assert of(Type.INTEGER) == integer(*INT64) == Kind(type=Type.INTEGER, nullable=True, low=INT64[0], high=INT64[1])
    for low, high in ((None, None), (0, None), (None, 0)):
        with pytest.raises(ParameterError, match="range must be given for integers"):
            Kind(type=Type.INTEGER, low=low, high=high)
    for low, high in ((0, 1), (0, None), (None, 0)):
        with pytest.raises(ParameterError, match="range must be given for integers"):
            Kind(type=Type.TEXT, low=low, high=high)
    with pytest.raises(ParameterError, match="kind must be an integer"):
        _ = of(Type.TEXT).range


def test_a_range_goes_up() -> None:
    assert integer(3, 3).range == (3, 3)
    with pytest.raises(ParameterError, match="range must be in order"):
        integer(4, 3)


@pytest.mark.parametrize("type_", list(Type))
def test_anything_may_be_missing_unless_it_is_said(type_: Type) -> None:
    assert of(type_).nullable
    assert not of(type_, nullable=False).nullable
    assert str(of(type_)) == type_.value
    if type_ is not Type.INTEGER:
        assert Kind(type=type_).nullable


@pytest.mark.parametrize(
    ("low", "high", "wide"),
    [
        (*INT64, False),
        (INT64[0] - 1, 0, True),
        (0, INT64[1] + 1, True),
        (0, INT64[1], False),
        (INT64[0], 0, False),
        (*INT128, True),
    ],
)
def test_how_many_bits_an_integer_needs(low: int, high: int, wide: bool) -> None:
    assert integer(low, high).wide is wide
