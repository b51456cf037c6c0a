"""Sparse histograms from few random sums."""

import math
from pathlib import Path

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import HubbubError, ParameterError
from hubbub.publish import Sensing, Terms, sensing_errors
from hubbub.publish.strategies.hashed import Signs
from hubbub.publish.strategies.sensing import recover


def spikes(cells: int, kept: int) -> np.ndarray:
    rng = np.random.default_rng(cells + kept)
    row = np.zeros(cells, dtype=np.int64)
    row[rng.choice(cells, kept, replace=False)] = rng.integers(500, 1001, kept)
    return row


@pytest.mark.parametrize(("cells", "kept"), [(500, 1), (500, 5), (300, 20)])
def test_without_noise_recovery_is_exact(cells: int, kept: int) -> None:
    truth = spikes(cells, kept)
    signs = Signs.draw((cells,), size=math.ceil(4 * kept * math.log(math.e * cells / kept)))
    assert np.allclose(recover(signs.matrix, signs.apply(truth).astype(float), sparsity=kept), truth)


def test_recovery_is_the_best_fit_of_its_columns() -> None:
    signs = Signs.draw((60,), size=40)
    sums = np.random.default_rng(3).normal(size=40)
    found = recover(signs.matrix, sums, sparsity=6)
    held = np.flatnonzero(found)
    assert len(held) <= 6
    rest = sums - signs.matrix @ found
    assert np.allclose(signs.matrix[:, held].T @ rest, 0, atol=1e-8)
    first = np.argsort(np.abs(signs.matrix.T @ sums))[-6:]
    start = sums - signs.matrix[:, first] @ np.linalg.lstsq(signs.matrix[:, first], sums, rcond=None)[0]
    assert rest @ rest <= start @ start + 1e-9


def test_as_many_cells_as_there_are() -> None:
    signs = Signs.draw((4,), size=30)
    truth = np.array([3.0, 1, 4, 1])
    assert np.allclose(recover(signs.matrix, signs.matrix @ truth, sparsity=9), truth)


def test_size_follows_the_sparsity() -> None:
    prepared = Sensing(sparsity=10).prepare((1000,), Terms.at(1))
    assert prepared.sketch.layer.size == math.ceil(40 * math.log(math.e * 100))
    assert Sensing(sparsity=10, size=77).prepare((1000,), Terms.at(1)).sketch.layer.size == 77
    assert Sensing(sparsity=10).prepare((5, 4), Terms.at(1)).sketch.layer.size == 20
    assert Sensing(sparsity=10, size=3).prepare((50,), Terms.at(1)).sparsity == 3


def test_far_less_error_than_noise_on_every_cell() -> None:
    (found,) = sensing_errors(cells=[4000], sparsities=[5], releases=3)
    # about √5 · 4 to 10 here, against √4000 · 1.36 = 86
    assert found.cells == 4000
    assert found.sparsity == 5
    assert 70 < found.flat < 100
    assert found.recovered < found.flat / 3


def test_a_release_and_its_copy(tmp_path: Path) -> None:
    truth = spikes(200, 3).reshape(10, 20)
    release = publish.run(truth, Sensing(sparsity=3), epsilon=2, delta=1e-6)
    assert release.cells.shape == (10, 20)
    assert np.count_nonzero(release.cells) == 3
    with pytest.raises(HubbubError, match="depends on the data"):
        release.prepared.variances(np.ones((1, 10, 20)))
    release.save(tmp_path / "sensing.json")
    assert np.allclose(publish.load(tmp_path / "sensing.json").cells, release.cells)


def test_refused() -> None:
    with pytest.raises(ParameterError):
        Sensing(sparsity=0)
    with pytest.raises(ParameterError):
        Sensing(sparsity=1, size=0)


def test_the_picture_has_a_line_for_each_sparsity() -> None:
    pytest.importorskip("matplotlib")
    from hubbub.report.pictures import plot_sensing

    axes = plot_sensing(list(sensing_errors(cells=[64, 128], sparsities=[2, 4], releases=1)))
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels == ["recovered, 2 cells not empty", "recovered, 4 cells not empty", "noise on every cell"]
    assert list(axes.get_lines()[0].get_xdata()) == [64, 128]
