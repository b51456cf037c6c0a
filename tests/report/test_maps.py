"""Maps as files: what is in them is the release, at the right place, and nothing of it runs or is fetched."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub
from hubbub import publish
from hubbub.errors import HubbubError, ParameterError
from hubbub.publish import spatial
from hubbub.publish.release.map_margins import Mapped
from hubbub.report import maps
from hubbub.report.map_data import CellMap, FlowMap
from hubbub.report.map_picture import largest
from hubbub.report.map_scale import ColourScale, scale_for
from hubbub.report.maps import read

EVIL = "</script><script>alert(1)</script>"
LON, LAT = publish.bins(10, 14, 4), publish.bins(50, 53, 3)


def released(over: dict[str, Any], strategy: Any = None, cells: Any = None) -> publish.Published:
    domain = publish.Domain.of(over)
    counts = np.arange(domain.size).reshape(domain.shape) * 100 if cells is None else cells
    return publish.run(counts, strategy or publish.Flat(), epsilon=100, domain=domain)


def geojson(made: publish.Published, folder: Path, **options: Any) -> dict[str, Any]:
    made.to_geojson(folder / "map.geojson", **options)
    told: dict[str, Any] = json.loads((folder / "map.geojson").read_text(encoding="utf-8"))
    return told


def page(made: publish.Published, folder: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    made.to_html(folder / "map.html", **options)
    text = (folder / "map.html").read_text(encoding="utf-8")
    (inside,) = re.findall(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.DOTALL)
    return text, json.loads(inside)


def unpacked(told: dict[str, str]) -> list[float]:
    kind = {"i": "<i4", "f": "<f4"}[told["kind"]]
    found: list[float] = np.frombuffer(base64.b64decode(told["data"]), dtype=kind).tolist()
    return found


@pytest.mark.parametrize("order", [("lon", "lat"), ("lat", "lon")])
def test_each_polygon_has_the_count_of_its_place(order: tuple[str, str], tmp_path: Path) -> None:
    made = released({name: {"lon": LON, "lat": LAT}[name] for name in order})
    told = geojson(made, tmp_path)
    assert told["type"] == "FeatureCollection"
    assert len(told["features"]) == 12
    for feature in told["features"]:
        ring = feature["geometry"]["coordinates"][0]
        (west, south), (east, north) = ring[0], ring[2]
        assert ring[0] == ring[-1]
        assert (east - west, north - south) == (1, 1)
        value = made.within({"lon": (west, east), "lat": (south, north)})
        assert feature["properties"] == {"count": value.value, "low": value.low, "high": value.high}
    about = told["properties"]
    assert about["epsilon"] == 100
    assert "one unit" in about["claim"]
    assert about["confidence"] == 0.95
    assert (about["x"], about["y"]) == ("lon", "lat")


def test_axes_can_be_said(tmp_path: Path) -> None:
    made = released({"lat": LAT, "lon": LON})
    assert geojson(made, tmp_path, axes=("lat", "lon"))["properties"]["x"] == "lat"


def test_leaves_are_polygons_and_their_counts_sums(tmp_path: Path) -> None:
    cells = np.random.default_rng(1).poisson(np.outer(np.arange(16), np.arange(8)))
    over = {"x": publish.bins(0, 16, 16), "y": publish.bins(0, 8, 8)}
    made = released(over, spatial.KdTree(height=2), cells)
    told = geojson(made, tmp_path)
    assert len(told["features"]) == 16
    assert "data" in told["properties"]["why_no_interval"]
    for feature in told["features"]:
        (west, south), _, (east, north), *_ = feature["geometry"]["coordinates"][0]
        assert set(feature["properties"]) == {"count"}
        inside = made.cells[int(west) : int(east), int(south) : int(north)]
        assert feature["properties"]["count"] == pytest.approx(inside.sum())
    _, inside_page = page(made, tmp_path)
    assert inside_page["partition"] is True
    assert len(unpacked(inside_page["boxes"])) == 64


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_third_axis_moves_the_map(at: int, tmp_path: Path) -> None:
    axes = [("lon", LON), ("lat", LAT)]
    axes.insert(at, ("hour", ["night", EVIL]))  # type: ignore[arg-type]
    made = released(dict(axes))
    told = geojson(made, tmp_path)
    assert len(told["features"]) == 24
    for feature in told["features"]:
        (west, south), _, (east, north), *_ = feature["geometry"]["coordinates"][0]
        asked = {"lon": (west, east), "lat": (south, north), "hour": feature["properties"]["hour"]}
        assert feature["properties"]["count"] == made.within(asked).value
    _, inside = page(made, tmp_path)
    assert inside["moments"] == ["night", EVIL]
    assert inside["movedBy"] == "hour"
    assert unpacked(inside["counts"]) == [feature["properties"]["count"] for feature in told["features"]]


def test_of_three_axes_of_bins_hours_move(tmp_path: Path) -> None:
    _, inside = page(released({"hour": publish.bins(0, 24, 2), "x": LON, "y": LAT}), tmp_path)
    assert inside["moments"] == ["0 to 12", "12 to 24"]
    _, inside = page(released({"x": LON, "y": LAT, "depth": publish.bins(0, 2, 2)}), tmp_path)
    assert inside["movedBy"] == "depth"


def test_flows_between_cells(tmp_path: Path) -> None:
    over = {"home_lat": LAT, "home_lon": LON, "work_lon": LON, "work_lat": LAT}
    made = released(over)
    shown = read(made, axes=None, of=(12.5, 51.5))
    assert isinstance(shown, FlowMap)
    assert (shown.origins.name, shown.destinations.name) == ("home", "work")
    assert (shown.plane.x, shown.plane.y, shown.plane.degrees) == ("lon", "lat", True)
    assert shown.chosen is not None
    assert shown.destinations.shapes[shown.chosen].tolist() == [12, 51, 13, 52]
    for start, end in ((0, 0), (5, 7), (11, 2)):
        (west, south, east, north), (west2, south2, east2, north2) = (
            zones.shapes[place].tolist() for zones, place in ((shown.origins, start), (shown.destinations, end))
        )
        box = {"home_lon": (west, east), "home_lat": (south, north)}
        found = made.within(box | {"work_lon": (west2, east2), "work_lat": (south2, north2)})
        assert shown.counts[start, end] == found.value
        assert shown.margins is not None
        assert found.high == pytest.approx(found.value + shown.margins[start, end])
        assert shown.leaving is not None
        everywhere = made.within(box)
        assert everywhere.high == pytest.approx(everywhere.value + shown.leaving[start])
    told = geojson(made, tmp_path)
    assert len(told["features"]) == 144
    assert told["features"][13]["geometry"]["coordinates"] == [[11.5, 50.5], [11.5, 50.5]]
    text, inside = page(made, tmp_path, of=(12.5, 51.5))
    assert inside["chosen"] == shown.chosen
    assert "flows" in text


def test_flows_between_regions(tmp_path: Path) -> None:
    made = released({"home": ["a", EVIL], "work": ["a", "b", "c"]})
    places = {"a": (0, 0), EVIL: (1, 2), "b": (3, 1), "c": (2, 2)}
    text, inside = page(made, tmp_path, places=places, of="c")
    assert inside["chosen"] == 2
    assert unpacked(inside["counts"]) == made.cells.reshape(-1).tolist()
    assert EVIL not in text
    told = geojson(made, tmp_path, places=places)
    assert told["features"][4]["properties"]["from"] == EVIL
    assert told["features"][4]["geometry"]["coordinates"] == [[1, 2], [3, 1]]
    assert told["features"][4]["properties"]["count"] == made.cells[1, 1]
    for wrong in ({"places": {"a": (0, 0)}}, {"places": places, "of": "d"}):
        with pytest.raises(ParameterError):
            made.to_html(tmp_path / "no.html", **wrong)


def test_the_largest_flows_are_apart_and_not_noise() -> None:
    over = {name: publish.bins(0, 4, 4) for name in ("home_x", "home_y", "work_x", "work_y")}
    cells = np.zeros((4, 4, 4, 4), dtype=int)
    cells[0, 0, 3, 3], cells[0, 0, 1, 1], cells[2, 2, 0, 0], cells[3, 0, 3, 3] = 5000, 9000, 3000, 1
    shown = read(publish.run(cells, publish.Flat(), epsilon=1, domain=publish.Domain.of(over)), axes=None)
    assert isinstance(shown, FlowMap)
    found = largest(shown, None, 2)
    assert [(start, end) for start, end, _ in found] == [(10, 0), (0, 15)]
    assert found[-1][2] == 1
    assert {end for _, end, _ in largest(shown, 15, 20)} == {15}


def test_other_peoples_words_end_no_script(tmp_path: Path) -> None:
    over = {EVIL: LON, "y<&>\u2028": LAT, "when": [EVIL, "b"]}
    text, inside = page(released(over), tmp_path, title=EVIL)
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert inside["title"] == EVIL
    assert "<title>&lt;/script&gt;" in text


def test_nothing_is_fetched_and_one_program_may_run(tmp_path: Path) -> None:
    text, _ = page(released({"lon": LON, "lat": LAT}), tmp_path)
    assert not re.search(r"https?://|url\(|@import|innerHTML|eval\(|fetch\(|XMLHttp", text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'$", policy)


def test_the_page_holds_what_was_released_and_no_more(tmp_path: Path) -> None:
    truth = np.full((4, 3), 7_654_321)
    made = publish.run(truth, publish.Flat(), epsilon=0.001, domain=publish.Domain.of({"lon": LON, "lat": LAT}))
    text, inside = page(made, tmp_path)
    assert unpacked(inside["counts"]) == made.cells.T.reshape(-1).tolist()
    assert "7654321" not in text


def test_numbers_that_are_not_whole_keep_their_digits(tmp_path: Path) -> None:
    made = released({"lon": LON, "lat": LAT}, spatial.QuadTree())
    _, inside = page(made, tmp_path)
    assert unpacked(inside["counts"]) == pytest.approx(made.cells.T.reshape(-1).tolist(), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize(
    "over",
    [
        {"lon": LON},
        {"a": range(4), "b": range(3)},
        {"lon": LON, "lat": LAT, "hour": range(2), "day": range(2)},
    ],
)
def test_what_is_no_map_says_what_would_be(over: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"publish\.bins"):
        released(over).to_html(tmp_path / "no.html")


def test_too_many_cells_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = released({"lon": LON, "lat": LAT})
    monkeypatch.setattr(maps, "MOST", 12)
    made.to_html(tmp_path / "map.html")
    monkeypatch.setattr(maps, "MOST", 11)
    with pytest.raises(ParameterError, match="coarser"):
        made.to_html(tmp_path / "map.html")


def test_a_point_outside_is_no_choice(tmp_path: Path) -> None:
    made = released({"home_x": LON, "home_y": LAT, "work_x": LON, "work_y": LAT})
    for of in ((9, 51), (14, 51), "nowhere", 3):
        with pytest.raises(ParameterError, match="of must be"):
            made.to_html(tmp_path / "no.html", of=of)


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        ({"type": "LineString", "coordinates": [[10, 50], [11, 51, 7]]}, [[10, 50, 11, 51]]),
        (
            {
                "type": "FeatureCollection",
                "features": [
                    {"type": "Feature", "geometry": None},
                    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}},
                    {
                        "type": "Feature",
                        "geometry": {"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [0, 0]]]]},
                    },
                ],
            },
            [[0, 0, 1, 0, 0, 0]],
        ),
    ],
)
def test_outlines(told: Any, lines: Any, tmp_path: Path) -> None:
    (tmp_path / "borders.json").write_text(json.dumps(told))
    _, inside = page(released({"lon": LON, "lat": LAT}), tmp_path, outlines=tmp_path / "borders.json")
    assert inside["lines"] == lines


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"type": "Circle"}', '{"type": "LineString", "coordinates": [["a", 1]]}', '{"type": "Point"}',
     '{"type": "LineString", "coordinates": [[1, NaN]]}'],
)  # fmt: skip
def test_outlines_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "borders.json").write_text(text)
    for path in (tmp_path / "borders.json", tmp_path / "missing.json"):
        with pytest.raises(ParameterError, match="outlines"):
            released({"lon": LON, "lat": LAT}).to_html(tmp_path / "no.html", outlines=path)


def test_scales_follow_how_skewed_counts_are() -> None:
    assert scale_for(np.array([-5.0, 0])) == ColourScale(name="even", top=1.0, middle=1.0)
    assert scale_for(np.arange(100.0)).name == "even"
    assert scale_for(np.append(np.ones(99), 20.0)).name == "root"
    assert scale_for(np.append(np.ones(9999), 1e6)).name == "log"
    even = scale_for(np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    assert even.name == "even"
    assert scale_for(np.array([1.0, 8.0]), np.array([99.0, 1.0])).name == "root"
    for name in ("even", "root", "log"):
        shares = ColourScale(name=name, top=100.0, middle=2.0).shares(np.array([-3.0, 0, 25, 100, 500]))
        assert shares[[0, 1, 3, 4]].tolist() == pytest.approx([0, 0, 1, 1])
        assert shares[2] == pytest.approx({"even": 0.25, "root": 0.5, "log": np.log(13.5) / np.log(51)}[name])


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "line.json").write_text('{"type": "LineString", "coordinates": [[10, 50], [11, 51]]}')
    region = {"home": ["a$b$", "c"], "work": ["c", "d"]}
    places = {"a$b$": (0, 0), "c": (1, 2), "d": (3, 1)}
    for name, made, options in (
        ("cells", released({"lon": LON, "lat": LAT}), {"outlines": tmp_path / "line.json", "title": "a $ map"}),
        ("leaves", released({"x": LON, "y": LAT}, spatial.KdTree(height=1)), {}),
        ("hours", released({"lon": LON, "lat": LAT, "hour": range(5)}), {}),
        ("flows", released({"home_x": LON, "home_y": LAT, "work_x": LON, "work_y": LAT}), {"of": (12, 51)}),
        ("regions", released(region), {"places": places}),
    ):
        made.to_png(tmp_path / f"{name}.png", **options)
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ParameterError, match="slider"):
        released({"lon": LON, "lat": LAT, "hour": range(25)}).to_png(tmp_path / "no.png")


def test_a_picture_shows_north_above_and_east_at_the_right() -> None:
    pytest.importorskip("matplotlib")
    from hubbub.report.map_picture import draw_cells, new_figure

    cells = np.zeros((4, 3), dtype=int)
    cells[3, 2] = 1000
    shown = read(released({"lon": LON, "lat": LAT}, cells=cells), axes=None)
    assert isinstance(shown, CellMap)
    image = draw_cells([new_figure(3, 3).subplots()], shown)
    assert int(np.argmax(image.get_array())) == 2 * 4 + 3
    assert image.origin == "lower"
    assert tuple(image.get_extent()) == (10, 14, 50, 53)


def test_without_the_reports_there_is_a_remedy(tmp_path: Path) -> None:
    class Bare(Mapped):
        pass

    assert hubbub.report
    with pytest.raises(HubbubError, match=r"Import hubbub\.report"):
        Bare().to_html(tmp_path / "no.html")
