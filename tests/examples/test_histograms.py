"""The pictures of publications are of made-up people, and are drawn."""

from pathlib import Path

import numpy as np
import pytest

from examples import histograms


def test_everybody_has_a_cell() -> None:
    chance = np.random.default_rng(1)
    assert histograms.ages(chance).shape == (histograms.OLDEST,)
    assert histograms.ages(chance).sum() == histograms.homes(chance).sum() == histograms.PEOPLE


def test_pictures_are_drawn_and_small(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in histograms.draw(tmp_path / "out"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 100_000
