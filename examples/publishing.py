"""The publishing part of the demo: ages of a generated hospital, published once and asked as often as one likes."""

import shutil
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from examples.hospital import KM, MOST_STAYS
from examples.pictures import ORANGE
from hubbub import publish
from hubbub.publish import spatial
from hubbub.publish.recipe import read_recipe
from hubbub.publish.release.published import Published
from hubbub.report.published import comparisons_of, page_of
from hubbub.session.database import Database

RECIPE = Path(__file__).with_name("publish.toml")
EACH = MOST_STAYS
"""Stays of a patient that count, as the recipe says: all of them."""
MAP = Fraction(3, 10)
"""The price of the map."""
RANGES = ((0, 17), (18, 64), (65, 84), (85, 255), (40, 40))


def published(db: Database, folder: Path, console: Console) -> Path:
    """Publish by the recipe, ask some ranges, and write the page; returns it."""
    shutil.copy(RECIPE, folder / RECIPE.name)
    recipe = read_recipe(folder / RECIPE.name)
    told = {one.name: db.explain_publish(one, **recipe.wish) for one in (recipe.strategy, *recipe.compare)}
    began = time.monotonic()
    made = recipe.after(db.publish(recipe.strategy, **recipe.wish))
    assert isinstance(made, Published)
    truth = _truth(folder, len(recipe.domain.axes[0].labels))
    table = Table(box=None, pad_edge=False)
    for name in ("ages", "stays", "95% interval", "truth"):
        table.add_column(name, justify="left" if name == "ages" else "right", style=ORANGE if name == "truth" else "")
    for low, high in RANGES:
        found = made.range(low, high)
        around = f"{found.low:,.0f} … {found.high:,.0f}"
        table.add_row(f"{low} to {high}", f"{found.value:,.0f}", around, f"{truth[low : high + 1].sum():,}")
    console.print(table)
    curves = comparisons_of({name: one.curve for name, one in told.items()})
    page = folder / "publish.html"
    page.write_text(
        page_of(made, comparisons=curves, truth=truth, title="Stays by age", seconds=time.monotonic() - began),
        encoding="utf-8",
    )
    return page


def mapped(db: Database, folder: Path) -> Path:
    """Where patients live, each counted once: a page with a map; returns it."""
    grid = {"home_x": publish.bins(0, KM, 64), "home_y": publish.bins(0, KM, 64)}
    made = db.publish(spatial.Auto(), over=grid, cells=1, each=1, epsilon=MAP)
    page = folder / "homes.html"
    made.to_html(page, title="Where patients live (generated; kilometres)")
    return page


def _truth(folder: Path, ages: int) -> np.ndarray[Any, Any]:
    """What the generated data really holds: shown only because nobody in it exists."""
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT age, sum(least(many, {EACH})) FROM (SELECT patient_id, age, count(*) AS many "
            f"FROM '{folder / 'stays.parquet'}' GROUP BY ALL) GROUP BY age"
        ).fetchall()
    cells = np.zeros(ages, dtype=np.int64)
    for age, count in found:
        cells[age] = count
    return cells
