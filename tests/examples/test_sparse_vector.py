"""The sparse vector's figure: what its finders find, and that the picture is drawn."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from examples.seeds import sparse_vector

GENEROUS = Fraction(10_000)


def test_the_answers_fall_like_their_ranks() -> None:
    values = sparse_vector.answers()
    assert len(values) == 10_000
    assert (np.diff(values) <= 0).all()
    assert abs(values[0] / values[9] - 10) < 0.01
    assert 980_000 < values.sum() <= 1_000_000


@pytest.mark.parametrize("name", sparse_vector.FINDERS)
def test_with_hardly_any_noise_everything_is_found(name: str) -> None:
    """At ε = 10,000 the scales are under 1/100: noise of one step has a chance below e^-100."""
    found = sparse_vector.recall(name, 8, GENEROUS, runs=3, questions=60)
    assert (found.mean, found.error) == (1.0, 0.0)


def test_places_are_those_of_the_values() -> None:
    values = np.array([5_000, 1, 9_000, 2])
    for find, *_ in sparse_vector.FINDERS.values():
        assert sorted(find(values, 2, GENEROUS, 5_000).tolist()) == [0, 2]


def test_the_picture(tmp_path: Path) -> None:
    rows = [sparse_vector.recall(name, 4, Fraction(1), runs=2, questions=40) for name in sparse_vector.FINDERS]
    path = sparse_vector.draw(rows, rows, tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
