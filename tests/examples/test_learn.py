"""The picture of k-means says what the documentation says it says."""

from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

import numpy as np

from examples import learn
from hubbub.testing.replay import replayed


def test_ours_is_near_the_original_and_the_lectures_ways_are_not() -> None:
    x = learn.rows()
    original = learn.distance(x, learn.original(x, 8, tries=60).cluster_centers_)
    with replayed():  # the same noise each time: nothing here fails by chance
        runs = [learn.models(x, seed=seed) for seed in range(3)]
    found = {name: float(np.mean([learn.distance(x, run[name].cluster_centers_) for run in runs])) for name in runs[0]}
    lecture, jointly, ours = found.values()
    assert ours <= 1.5 * original
    assert min(lecture, jointly) >= 2 * ours


def test_it_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "original", lambda x, clusters: learn.Centres(cluster_centers_=x[:clusters]))
    assert learn.main(tmp_path, times=2).stat().st_size > 10_000
    assert "hubbub.learn.KMeans" in capsys.readouterr().out
