"""Maps of cities that do not exist: traffic at three prices (lecture 004), a quadtree beside a kd-tree (001), where the
workers of one district live (000), and a day in hours.

People and cars are generated, so errors against the truth may be told; with real ones they never are. Everything goes
through the gate: ``hb.open``, ``db.publish``, and a file. Pictures and pages go to out/maps.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hubbub as hb
from examples.pictures import GREY, OUT, blank, save
from examples.seeds.traffic import EPSILONS, SIDE, SLIDE, road_map
from hubbub import publish
from hubbub.ledger import Marks
from hubbub.publish import spatial
from hubbub.publish.release.published import Published
from hubbub.report.map_data import CellMap, FlowMap
from hubbub.report.map_picture import colour_bar, draw_cells, draw_flows, shades
from hubbub.report.map_scale import ColourScale, scale_for
from hubbub.report.maps import read
from hubbub.session.database import Database

Array = np.ndarray[Any, Any]

KM = 30
"""Side of the made-up city."""
CENTRE, HARBOUR, CAMPUS = (14.2, 15.8), (21.5, 10.5), (8.5, 22.0)
WORKERS, RIDES, PEOPLE = 600_000, 400_000, 120_000


def opened(folder: Path, name: str, columns: Mapping[str, Any], *, epsilon: Fraction, rows: int = 1) -> Database:
    """A generated table behind its boundary: one row for each person or car, unless more are named."""
    folder.mkdir(parents=True, exist_ok=True)
    path, ledger = folder / f"{name}.parquet", folder / f"{name}.ledger"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("generated", {key: np.ascontiguousarray(column) for key, column in columns.items()})
        connection.execute(f"COPY (SELECT * FROM generated) TO '{path}' (FORMAT parquet)")
    return hb.open(
        path,
        unit="who",
        budget=hb.Budget(epsilon=epsilon),
        limits=hb.Limits(max_groups=rows, max_rows=1),
        account=name,
        ledger=ledger,
        marks=Marks(folder / f"state-{name}"),
    )


def around(rng: np.random.Generator, many: int, spots: Sequence[tuple[float, float, float, float]]) -> Array:
    """Points about some spots, each with its spread and its share; all within the city."""
    shares = np.array([share for *_, share in spots])
    chosen = rng.choice(len(spots), size=many, p=shares / shares.sum())
    middle, spread = np.array([spot[:2] for spot in spots])[chosen], np.array([spot[2] for spot in spots])[chosen]
    return np.clip(rng.normal(middle, spread[:, np.newaxis]), 0.001, KM - 0.001)


def shore(path: Path) -> Path:
    """A made-up river as GeoJSON, for ``outlines``."""
    along = np.linspace(0, KM, 121)
    line = [[round(float(x), 3), round(float(12.5 + 3 * np.sin(x / 5) - 0.18 * x), 3)] for x in along]
    path.write_text(json.dumps({"type": "LineString", "coordinates": line}))
    return path


# ——— traffic at three prices


def traffic(folder: Path, *, thinned: int = 1) -> Path:
    """Cars in 300 × 300 cells at ε = 1, 0.01 and 0.001, beside the truth: what is left of it."""
    counts, cells = road_map()
    truth = np.zeros(SIDE * SIDE, dtype=np.int64)
    truth[cells] = counts // thinned
    place = np.repeat(np.arange(SIDE * SIDE), truth)
    y, x = np.divmod(place, SIDE)
    columns = {"who": np.arange(len(place)), "x": (x + 0.5).astype(np.float32), "y": (y + 0.5).astype(np.float32)}
    over = {"x": publish.bins(0, SIDE, SIDE), "y": publish.bins(0, SIDE, SIDE)}
    square = truth.reshape(SIDE, SIDE).T
    with opened(folder, "traffic", columns, epsilon=Fraction(2)) as db:
        cheapest_first = [db.publish(publish.Flat(), over=over, epsilon=epsilon) for epsilon in EPSILONS[::-1]]
    made = cheapest_first[::-1]  # asked the other way round, the better answer would be served again for nothing
    made[0].to_html(folder / "traffic.html", title="Cars, at ε = 1")
    made[2].to_html(folder / "traffic_0.001.html", title="The same cars, at ε = 0.001")
    figure = blank(8.2, 7.6)
    panels = figure.subplots(2, 2).reshape(-1)
    scale = ColourScale(name="root", top=float(np.quantile(square[square > 0], 0.998)), middle=1.0)
    image = panels[0].imshow(
        scale.shares(square.T), origin="lower", cmap=shades(), vmin=0, vmax=1, interpolation="nearest"
    )
    panels[0].set_title("generated traffic")
    panels[0].set_xlabel(f"{truth.sum():,} cars in {SIDE:,} × {SIDE:,} cells", fontsize=9)
    for axes, one, epsilon in zip(panels[1:], made, EPSILONS, strict=True):
        draw_cells([axes], _cells(one), scale=scale, bar=False)
        wrong = np.abs(one.cells - square)
        axes.set_title(f"ε = {float(epsilon):g}")
        axes.set_ylabel("")
        told = f"error: average {wrong.mean():,.2f}, largest {wrong.max():,.0f}"
        axes.set_xlabel(f"{told}\n(the lecture: {SLIDE[epsilon][0]:,.2f} and {SLIDE[epsilon][1]:,.0f})", fontsize=9)
    for axes in panels:
        axes.set_xticks([])
        axes.set_yticks([])
    colour_bar(image, panels, scale, "cars in a cell")
    return save(figure, "map_traffic.png", folder, dots=92, colours=256)


# ——— two trees


def trees(folder: Path, *, people: int = PEOPLE) -> Path:
    """The leaves of a pruned quadtree and of a kd-tree on the same people."""
    rng = np.random.default_rng(6)
    spots = [(*CENTRE, 1.8, 0.45), (*HARBOUR, 1.0, 0.2), (*CAMPUS, 0.7, 0.15), (15, 15, 8.0, 0.2)]
    points = around(rng, people, spots)
    over = {"x_km": publish.bins(0, KM, 128), "y_km": publish.bins(0, KM, 128)}
    with opened(
        folder, "homes", {"who": np.arange(people), "x_km": points[:, 0], "y_km": points[:, 1]}, epsilon=Fraction(2)
    ) as db:
        quad = db.publish(spatial.QuadTree(stop=people / 400), over=over, epsilon=Fraction(1, 2))
        kd = db.publish(spatial.KdTree(height=4), over=over, epsilon=Fraction(1, 2))
    figure = blank(11.5, 5.6)
    panels = figure.subplots(1, 2, sharey=True)
    shown = [_cells(quad), _cells(kd)]
    sizes = np.concatenate([one.sizes for one in shown])
    scale = scale_for(np.concatenate([one.counts[0] for one in shown]) / sizes, sizes)
    image = None
    for axes, one, made in zip(panels, shown, (quad, kd), strict=True):
        image = draw_cells([axes], one, scale=scale, bar=False)
        rule = "halves, pruned where few seem to be" if made is quad else "cut at private medians"
        axes.set_title(f"{made.strategy.name}: {rule}", fontsize=11)
        axes.set_xlabel(f"{len(one.boxes):,} leaves, {made.price}")
    panels[1].set_ylabel("")
    colour_bar(image, panels, scale, "people for each cell of the grid")
    quad.to_html(folder / "quadtree.html", title="Homes by a quadtree")
    kd.to_html(folder / "kd_tree.html", title="Homes by a kd-tree")
    kd.to_geojson(folder / "kd_tree.geojson")
    return save(figure, "map_trees.png", folder, dots=80, colours=256)


# ——— home and work


def commuting(folder: Path, *, workers: int = WORKERS) -> Path:
    """Home and work of generated workers on 15 × 15 districts each, and where those of the centre live."""
    rng = np.random.default_rng(7)
    work = around(rng, workers, [(*CENTRE, 1.6, 0.5), (*HARBOUR, 1.2, 0.25), (*CAMPUS, 0.9, 0.15), (15, 15, 8, 0.1)])
    spots = [(12, 17, 3.0, 0.3), (18, 19, 2.6, 0.25), (22, 12, 2.2, 0.15), (7, 24, 2.0, 0.15), (15, 15, 8, 0.15)]
    near = np.clip(work + rng.normal(0, 3.5, (workers, 2)), 0.001, KM - 0.001)
    home = np.where(rng.random((workers, 1)) < 0.4, near, around(rng, workers, spots))
    columns = {
        "who": np.arange(workers),
        "home_x": home[:, 0],
        "home_y": home[:, 1],
        "work_x": work[:, 0],
        "work_y": work[:, 1],
    }
    over = {name: publish.bins(0, KM, 15) for name in list(columns)[1:]}
    river = shore(folder / "river.geojson")
    with opened(folder, "workers", columns, epsilon=Fraction(1)) as db:
        made = db.publish(publish.Flat(), over=over, epsilon=1)
    made.to_html(folder / "commuting.html", of=CENTRE, outlines=river, title="Home and work in a made-up city")
    figure = blank(12.0, 4.9)
    shown = read(made, axes=None, of=CENTRE)
    assert isinstance(shown, FlowMap)
    along = np.array(json.loads(river.read_text())["coordinates"])
    draw_flows(figure.subplots(1, 2), shown, [list(map(tuple, along.tolist()))])
    return save(figure, "map_commuting.png", folder, dots=80, colours=256)


# ——— a day


def day(folder: Path, *, rides: int = RIDES) -> Path:
    """Pickups by place and hour: a page with a slider."""
    rng = np.random.default_rng(8)
    hour = np.concatenate([rng.normal(8.5, 1.6, rides // 2), rng.normal(18.5, 2.6, rides - rides // 2)]) % 24
    out = around(rng, rides, [(12, 17, 3, 0.3), (18, 19, 2.6, 0.3), (22, 12, 2.2, 0.2), (15, 15, 8, 0.2)])
    inside = around(rng, rides, [(*CENTRE, 1.6, 0.5), (*HARBOUR, 1.2, 0.3), (*CAMPUS, 0.9, 0.2)])
    points = np.where((hour < 13)[:, np.newaxis], out, inside)
    columns = {"who": np.arange(rides), "x_km": points[:, 0], "y_km": points[:, 1], "hour": hour}
    over = {"x_km": publish.bins(0, KM, 40), "y_km": publish.bins(0, KM, 40), "hour": publish.bins(0, 24, 24)}
    river = shore(folder / "river.geojson")
    with opened(folder, "rides", columns, epsilon=Fraction(1)) as db:
        made = db.publish(publish.Flat(), over=over, epsilon=1)
    made.to_html(folder / "day.html", outlines=river, title="Pickups through a day")
    made.to_png(folder / "day.png", outlines=river, title="Pickups through a day")
    return folder / "day.html"


def _cells(made: Published) -> CellMap:
    shown = read(made, axes=None)
    assert isinstance(shown, CellMap)
    return shown


def main(folder: Path = OUT / "maps") -> None:
    """All of them."""
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for make in (traffic, trees, commuting, day):
        made = make(folder)
        console.print(f"{make.__name__:<10} {made.name}", style=GREY)
    for table in folder.glob("*.parquet"):
        table.unlink()
    pages = ", ".join(sorted(page.name for page in folder.glob("*.html")))
    console.print(f"In {folder.name}/, pages to open in a browser: {pages}")


if __name__ == "__main__":
    main()
