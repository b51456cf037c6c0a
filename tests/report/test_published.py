"""The page of a publication: everything is on it, nothing on it runs or is fetched; and the pictures."""

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.report import charts
from hubbub.report.published import comparisons_of, page_of

CELLS = np.arange(60).reshape(20, 3)
EVIL = "<script>alert(1)</script>"


def released(**changes: Any) -> publish.Published:
    domain = publish.Domain.of({"age": range(20), EVIL: ["a", "b&", EVIL]})
    options: dict[str, Any] = {"strategy": publish.Flat(), "epsilon": 1, "domain": domain} | changes
    return publish.run(options.pop("cells", CELLS), **options)


def page(made: publish.Published, **options: Any) -> str:
    return page_of(made, made=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), **options)


def test_everything_is_on_it() -> None:
    text = page(released(), comparisons=comparisons_of({"flat": [(1, 1.5), (60, 11.0)], "fourier": None}), seconds=1.25)
    for words in (
        "60 cells",
        "ε = 1",
        "2026-01-02 03:04 UTC, in 1.2 s",
        "Certificate",
        "discrete-laplace",
        "95% interval",
    ):
        assert words in text
    assert "Errors of fourier depend on the data" in text
    assert text.count("<svg") == 4
    assert "truth" not in text.replace(".truth", "")


def test_nothing_runs_and_nothing_is_fetched() -> None:
    text = page(released())
    assert "<script" not in text
    assert not re.search(r"https?://|url\(|@import", text)
    assert "&lt;script&gt;" in text


def test_the_truth_of_generated_data() -> None:
    text = page(released(), truth=CELLS, comparisons=comparisons_of({"flat": [(1, 1.5), (60, 11.0)]}))
    assert f"{CELLS.sum():,}" in text
    assert "true error" in text
    assert text.count("<circle") >= 23


def test_steps_take_the_intervals_away() -> None:
    text = page(released().nonnegative())
    assert "made non-negative afterwards" in text
    assert "no whiskers" in text
    assert "<td>–</td>" in text


def test_bars_are_as_high_as_their_values() -> None:
    text = charts.bars(np.array([10.0, 5.0, -5.0]), ["a", "b", "c"], deviations=np.array([1.0, 1.0, 1.0]))
    high = [float(one) for one in re.findall(r'<rect [^>]*height="([0-9.]+)"', text)]
    assert high[0] == pytest.approx(2 * high[1], abs=0.2)
    assert high[1] == pytest.approx(high[2], abs=0.2)
    assert "a: 10 ± 1" in text


def test_curves_on_two_log_scales() -> None:
    text = charts.curves({"x": [(1, 1), (10, 10), (100, 100)]}, dots=[(10, 10)])
    (line,) = re.findall(r'points="([^"]*)"', text)
    places = [tuple(map(float, one.split(","))) for one in line.split()]
    assert places[1][0] - places[0][0] == pytest.approx(places[2][0] - places[1][0], abs=0.2)
    assert places[0][1] - places[1][1] == pytest.approx(places[1][1] - places[2][1], abs=0.2)
    assert charts.curves({}) == ""


def test_many_cells_are_summed_up() -> None:
    made = publish.run(np.ones(5000, dtype=np.int64), publish.Flat(), epsilon=1)
    text = page(made)
    assert "32 cells a bar" in text
    assert text.count("<rect") <= 200


def test_plots() -> None:
    pytest.importorskip("matplotlib")
    bars = publish.run(np.arange(5), publish.Flat(), epsilon=1).plot()
    assert len(bars.patches) == 5
    assert len(bars.collections) == 1
    heat = released().plot(title="a $ map")
    assert heat.images[0].get_array().shape == (20, 3)
    assert heat.get_title() == r"a \$ map"
    after = publish.run(np.arange(5), publish.Flat(), epsilon=1).nonnegative().plot()
    assert not after.collections
    with pytest.raises(ParameterError):
        publish.run(np.ones((2, 2, 2), dtype=int), publish.Flat(), epsilon=1).plot()


@pytest.mark.parametrize(("rows", "named"), [(20, 20), (21, 7), (32, 8)])
def test_names_of_a_large_map_do_not_overlap(rows: int, named: int) -> None:
    pytest.importorskip("matplotlib")
    heat = publish.run(np.ones((rows, 2), dtype=int), publish.Flat(), epsilon=1).plot()
    assert len(heat.get_yticks()) == named
    assert len(heat.get_xticks()) == 2
    assert publish.run(np.ones(40, dtype=int), publish.Flat(), epsilon=1).plot().get_xticks().size == 40
    assert publish.run(np.ones(41, dtype=int), publish.Flat(), epsilon=1).plot().get_xticks().size == 14
