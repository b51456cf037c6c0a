"""The page of a map in a browser: it is dragged, zoomed and read, it moves, and it never asks the network for anything.

Skipped where there is no Chromium or no playwright.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.publish import spatial

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

EVIL = "</script><img src=x onerror=alert(1)>"
WEST, EAST, SOUTH, NORTH = 10, 14, 50, 54


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield started
        started.close()


class Visit:
    """A page that was opened, with everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, *, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": 900, "height": 900}, color_scheme=scheme, offline=True)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda one: self.complaints.append(one.text))
        self.page.on("pageerror", lambda one: self.complaints.append(str(one)))
        self.page.on("dialog", lambda one: self.complaints.append(one.message))
        self.page.on("request", lambda one: self.requests.append(one.url))
        self.page.goto(path.as_uri())
        self.own = path.as_uri()

    def settle(self) -> None:
        """Two frames, so that what was asked for is drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    @property
    def reading(self) -> str:
        self.settle()
        found: str = self.page.inner_text("#reading")
        return found

    def to(self, x: float, y: float) -> tuple[float, float]:
        """On the screen, by shares of the map's frame."""
        box = self.page.locator("#map").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def read_at(self, x: float, y: float) -> str:
        self.page.mouse.move(*self.to(x, y))
        return self.reading

    def dots(self) -> bytes:
        self.settle()
        found: bytes = self.page.locator("#map").screenshot()
        return found

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []
        assert [one for one in self.requests if one != self.own and not one.startswith("data:")] == []


def bounds(reading: str) -> tuple[float, ...]:
    """West, east, south and north of a cell that was read."""
    found = re.match(r"\S+ (\S+) to (\S+), \S+ (\S+) to (\S+?)(,|\n|$)", reading)
    assert found, reading
    return tuple(float(one) for one in found.groups()[:4])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("maps")


@pytest.fixture(scope="module")
def made() -> publish.Published:
    cells = np.random.default_rng(2).poisson(200, size=(32, 32))
    over = {"x": publish.bins(WEST, EAST, 32), "y": publish.bins(SOUTH, NORTH, 32)}
    return publish.run(cells, publish.Flat(), epsilon=1, domain=publish.Domain.of(over))


def test_a_cell_is_read_with_its_interval(browser: Any, folder: Path, made: publish.Published) -> None:
    made.to_html(folder / "cells.html", title=EVIL)
    visit = Visit(browser, folder / "cells.html")
    assert visit.page.inner_text("h1") == EVIL
    assert "Point at the map" in visit.reading
    reading = visit.read_at(0.5, 0.45)
    west, east, south, north = bounds(reading)
    found = made.within({"x": (west, east), "y": (south, north)})
    assert found.low is not None
    assert found.high is not None
    assert reading.split("\n")[1] == f"{found.value:,.0f} ({found.low:,.0f} … {found.high:,.0f}, 95%)"
    assert "ε = 1" in visit.page.inner_text("#claim")
    assert "Point at the map" in visit.read_at(0.01, 0.01)
    visit.close()


def test_dragging_moves_what_lies_under_the_pointer(browser: Any, folder: Path, made: publish.Published) -> None:
    made.to_html(folder / "drag.html")
    visit = Visit(browser, folder / "drag.html")
    held, before = bounds(visit.read_at(0.51, 0.512)), visit.dots()
    visit.page.mouse.down()
    visit.page.mouse.move(*visit.to(0.55, 0.55), steps=4)
    visit.page.mouse.move(*visit.to(0.61, 0.612), steps=4)
    visit.page.mouse.up()
    assert bounds(visit.read_at(0.61, 0.612)) == held
    assert bounds(visit.read_at(0.51, 0.512)) != held
    assert visit.dots() != before
    visit.page.click("#all")
    assert bounds(visit.read_at(0.51, 0.512)) == held
    visit.close()


def test_zooming_keeps_the_place_and_makes_cells_larger(browser: Any, folder: Path, made: publish.Published) -> None:
    made.to_html(folder / "zoom.html")
    visit = Visit(browser, folder / "zoom.html")

    def step() -> float:
        """How much of x there is between two spots of the frame."""
        return bounds(visit.read_at(0.71, 0.51))[0] - bounds(visit.read_at(0.51, 0.51))[0]

    wide, held = step(), bounds(visit.read_at(0.61, 0.612))
    visit.page.mouse.wheel(0, -600)
    assert bounds(visit.read_at(0.612, 0.614)) == held
    near = step()
    assert 0 < near < wide
    visit.page.mouse.wheel(0, 400)
    assert near < step() < wide
    visit.page.click("#all")
    visit.page.click("#in")
    visit.page.click("#in")
    assert step() < wide
    visit.page.click("#out")
    visit.page.click("#out")
    assert step() == pytest.approx(wide)
    visit.close()


def test_the_keyboard_reads_and_zooms(browser: Any, folder: Path, made: publish.Published) -> None:
    made.to_html(folder / "keys.html")
    visit = Visit(browser, folder / "keys.html")
    visit.page.locator("#scale").focus()
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("() => document.activeElement.id") == "map"
    west, _, south, _ = bounds(visit.reading)
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowUp")
    assert bounds(visit.reading)[::2] == (west + 0.125, south + 0.125)
    before = visit.dots()
    visit.page.keyboard.press("+")
    assert visit.dots() != before
    visit.page.keyboard.press("0")
    assert visit.dots() == before
    visit.close()


def test_the_slider_and_the_button_move_the_hours(browser: Any, folder: Path) -> None:
    over = {"x": publish.bins(WEST, EAST, 8), "y": publish.bins(SOUTH, NORTH, 8), "hour": [*range(5), EVIL]}
    cells = np.ones((8, 8, 1), dtype=int) * 1000 * np.arange(1, 7)
    made = publish.run(cells, publish.Flat(), epsilon=1, domain=publish.Domain.of(over))
    made.to_html(folder / "hours.html")
    visit = Visit(browser, folder / "hours.html", scheme="dark")
    assert visit.page.inner_text("#moment-name") == EVIL, "the busiest hour comes first"
    west, east, south, north = bounds(visit.read_at(0.5, 0.5))
    box = {"x": (west, east), "y": (south, north)}
    visit.page.locator("#moment").focus()
    visit.page.keyboard.press("Home")
    assert visit.page.inner_text("#moment-name") == "0"
    assert f"{made.within(box | {'hour': 0}).value:,.0f} (" in visit.reading
    before = visit.dots()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowRight")
    assert visit.page.get_attribute("#moment", "aria-valuetext") == "2"
    assert f"{made.within(box | {'hour': 2}).value:,.0f} (" in visit.reading
    assert visit.dots() != before
    visit.page.click("#play")
    visit.page.wait_for_function("() => document.getElementById('moment-name').textContent === '4'")
    visit.page.click("#play")
    assert visit.page.inner_text("#play") == "Play"
    visit.close()


def test_leaves_say_why_there_is_no_interval(browser: Any, folder: Path) -> None:
    cells = np.random.default_rng(3).poisson(np.outer(np.arange(32), np.arange(32)))
    over = {"x": publish.bins(WEST, EAST, 32), "y": publish.bins(SOUTH, NORTH, 32)}
    made = publish.run(cells, spatial.KdTree(height=3), epsilon=1, domain=publish.Domain.of(over))
    made.to_html(folder / "leaves.html")
    visit = Visit(browser, folder / "leaves.html")
    reading = visit.read_at(0.4, 0.6)
    west, east, south, north = bounds(reading)
    found = made.within({"x": (west, east), "y": (south, north)})
    count = float(re.split(r"[ \n]", reading.split("\n")[1])[0].replace(",", "").replace("−", "-"))
    assert count == pytest.approx(found.value, rel=0.002, abs=0.01)
    assert "in a leaf of" in reading
    assert "No interval: There is no error to state" in reading
    assert "depends on the data" in visit.page.inner_text("#claim")
    visit.close()


def test_choosing_a_district_shows_where_its_workers_live(browser: Any, folder: Path) -> None:
    over = {name: publish.bins(0, 4, 4) for name in ("home_x", "home_y", "work_x", "work_y")}
    cells = np.random.default_rng(4).poisson(300, size=(4, 4, 4, 4))
    made = publish.run(cells, publish.Flat(), epsilon=1, domain=publish.Domain.of(over))
    made.to_html(folder / "flows.html")
    visit = Visit(browser, folder / "flows.html")
    everybody = visit.read_at(0.45, 0.4)
    assert everybody.startswith("work 1 to 2, 2 to 3\n"), everybody
    total = made.within({"work_x": (1, 2), "work_y": (2, 3)})
    assert total.low is not None
    assert f"{total.value:,.0f} ({total.low:,.0f}" in everybody
    before = visit.dots()
    visit.page.mouse.click(*visit.to(0.45, 0.4))
    reading = visit.read_at(0.6, 0.6)
    assert reading.startswith("home 2 to 3, 1 to 2\n"), reading
    one = made.within({"home_x": (2, 3), "home_y": (1, 2), "work_x": (1, 2), "work_y": (2, 3)})
    assert one.low is not None
    assert f"{one.value:,.0f} ({one.low:,.0f}" in reading
    assert "(1 to 2, 2 to 3)" in reading
    assert visit.dots() != before
    drawn = visit.dots()
    visit.page.uncheck("#arrows")
    assert visit.dots() != drawn
    visit.page.select_option("#direction", "from")
    assert visit.read_at(0.45, 0.4).startswith("home 1 to 2, 2 to 3\n")
    assert "all with home here" in visit.reading
    visit.close()


def test_regions_are_chosen_too_and_their_names_are_words(browser: Any, folder: Path) -> None:
    names = [EVIL, "b", "c"]
    domain = publish.Domain.of({"home": names, "work": names})
    made = publish.run(np.arange(9).reshape(3, 3) * 500, publish.Flat(), epsilon=1, domain=domain)
    made.to_html(folder / "regions.html", places={EVIL: (0, 0), "b": (2, 0), "c": (1, 2)}, of=EVIL)
    visit = Visit(browser, folder / "regions.html")
    visit.page.click("#largest-title")
    assert EVIL in visit.page.inner_text("#largest")
    assert visit.page.locator("img").count() == 0
    visit.page.click("#none")
    visit.page.locator("#map").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("Enter")
    assert "in the marked place" in visit.reading
    visit.close()
