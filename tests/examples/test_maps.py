"""The maps of the documentation, of smaller cities."""

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from examples import maps


def test_pictures_and_pages_are_made(tmp_path: Path) -> None:
    assert maps.trees(tmp_path, people=3_000).read_bytes().startswith(b"\x89PNG")
    assert maps.commuting(tmp_path, workers=3_000).read_bytes().startswith(b"\x89PNG")
    assert "Home and work" in (tmp_path / "commuting.html").read_text(encoding="utf-8")
    told = json.loads((tmp_path / "kd_tree.geojson").read_text(encoding="utf-8"))
    assert 200 < len(told["features"]) <= 256, "a single cell is not cut"
    assert told["properties"]["epsilon"] == 0.5
    total = sum(one["properties"]["count"] for one in told["features"])
    assert total == pytest.approx(3_000, abs=600), "far beyond the noise of a sum at this price"


def test_cheap_maps_are_the_noisier_ones(tmp_path: Path) -> None:
    assert maps.traffic(tmp_path, thinned=400).exists()
    size = {name: (tmp_path / name).stat().st_size for name in ("traffic.html", "traffic_0.001.html")}
    assert all(many > 300_000 for many in size.values())
    assert "ε = 0.001" in (tmp_path / "traffic_0.001.html").read_text(encoding="utf-8")
