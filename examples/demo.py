"""The main job from nothing: a generated hospital is asked in SQL, with error bars beside the truth, a price list, the
ledger, and a report with pictures.

Run by ``make demo``. The patients are generated here, so the truth may stand beside the answers; with real people it
never does.
"""

from __future__ import annotations

import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table
from rich.text import Text

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hubbub as hb
from examples import hospital
from examples.pages import Section, page
from examples.pictures import GREY, ORANGE, OUT, ROOT
from examples.publishing import MAP, mapped, published
from hubbub.ledger import Marks
from hubbub.query.answer.answer import Answer
from hubbub.session.database import Database

QUESTIONS = (
    (
        "How many patients, and how many stays?",
        "SELECT count(DISTINCT patient_id) AS patients, count(*) AS stays FROM stays",
        0.1,
    ),
    (
        "What does a stay cost, ward by ward?",
        "SELECT ward, count(*) AS stays, avg(cost) AS mean_cost FROM stays GROUP BY ward ORDER BY mean_cost DESC",
        0.8,
    ),
    (
        "When do people come?",
        "SELECT month(admitted) AS month, count(DISTINCT patient_id) AS patients FROM stays "
        "WHERE month(admitted) IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) GROUP BY month(admitted)",
        0.3,
    ),
    (
        "How long do they stay, by age?",
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS who, "
        "avg(nights) AS nights, stddev(nights) AS spread FROM stays GROUP BY who",
        0.7,
    ),
    (
        "How busy is each floor? (joined with a public table)",
        "SELECT w.floor, sum(s.nights) AS nights FROM stays s JOIN wards w ON s.ward = w.ward GROUP BY w.floor",
        0.5,
    ),
)
MAX_GROUPS = 12
"""As many as a question has: months."""
LIMITS = hb.Limits(max_groups=MAX_GROUPS, max_rows=hospital.MOST_STAYS, max_total_rows=hospital.MOST_STAYS)
"""Nothing of a patient is dropped, so that an interval holds the truth."""
BOUNDS = {"cost": (0, 40_000), "nights": (0, 120), "age": (0, 110)}
"""Hardly any value is clamped: it moves the mean cost of a ward by at most 1%, a tenth of its interval."""
REFUSED = (
    "SELECT * FROM stays",
    "SELECT patient_id, sum(cost) FROM stays GROUP BY patient_id",
    "SELECT count(*) FROM read_csv('/etc/passwd')",
)


def opened(folder: Path, *, stays: int) -> Database:
    """The hospital behind its boundary, with a fresh ledger."""
    table, wards = hospital.build(folder, stays=stays)
    return hb.open(
        table,
        unit="patient_id",
        budget=hb.Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9)),
        bounds=BOUNDS,
        keys={"ward": list(hospital.WARDS)},
        limits=LIMITS,
        tables={"wards": wards},
        account="patients",
        ledger=folder / "hospital.ledger",
        marks=Marks(folder / "state"),
        log=lambda problem: print(problem, file=sys.stderr),  # nobody in this data exists, so it may be said
    )


def truth_of(folder: Path, question: str) -> list[dict[str, Any]]:
    """What the generated data really holds: shown only because nobody in it exists."""
    connection = duckdb.connect()
    for name in ("stays", "wards"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
    found = connection.execute(question)
    names = [column[0] for column in found.description or []]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    connection.close()
    return rows


def beside(answer: Answer, truth: list[dict[str, Any]], keys: list[str]) -> Table:
    """Noisy numbers, their margins, and the truth."""
    known = {tuple(row[key] for key in keys): row for row in truth}
    table = Table(box=None, pad_edge=False)
    for name in answer.columns:
        table.add_column(name, justify="left" if name in keys else "right")
        if name not in keys:
            table.add_column("95% interval", justify="right", style=GREY)
            table.add_column("truth", justify="right", style=ORANGE)
    for row in answer.to_dicts():
        real = known.get(tuple(row[key] for key in keys), {})
        cells = []
        for name in answer.columns:
            cells.append(_shown(row[name]))
            if name not in keys:
                cells += [f"{_shown(row[f'{name}_low'])} … {_shown(row[f'{name}_high'])}", _shown(real.get(name, 0))]
        table.add_row(*cells)
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main(stays: int = hospital.STAYS, folder: Path = OUT / "hospital") -> None:
    """Ask, see, be refused, read the ledger, write the report."""
    console = Console(width=None if sys.stdout.isatty() else 118, highlight=False)
    console.rule("[bold]Hubbub: a hospital that does not exist, asked in SQL")
    shutil.rmtree(folder, ignore_errors=True)
    with console.status(f"generating {stays:,} stays"):
        db = opened(folder, stays=stays)
    console.print(
        f"{stays:,} stays of up to {hospital.PATIENTS:,} patients. Protected: one patient with all their stays.\n"
        f"A patient counts in at most {MAX_GROUPS} groups of a question, with at most {hospital.MOST_STAYS} stays in "
        "all: the owner knows that nobody has\nmore. So nothing is dropped, and 95% of the intervals hold the truth. "
        "(hubbub advise would have proposed as much.)\n"
    )
    sections: list[Section] = []
    with db:
        console.print("[bold]What there is[/] (schema and budget tell what is declared, and cost nothing)")
        console.print(Text(repr(db.schema())))
        console.print(f"{db.budget}\n")
        console.print("[bold]The price list[/] (explain reads nothing and costs nothing)")
        for title, question, epsilon in QUESTIONS:
            told = db.explain(question, epsilon=epsilon).to_dict()
            console.print(f"  {title:<54} ε = {epsilon:<4} {told['cost']['text']} of {told['left']}")
        for number, (title, question, epsilon) in enumerate(QUESTIONS, start=1):
            console.print(f"\n[bold]{number}. {title}[/]")
            console.print(Text(question, style=GREY))
            answer = db.sql(question, epsilon=epsilon)
            keys = [name for name in answer.columns if not any(f"{name}_low" in row for row in answer.to_dicts())]
            truth = truth_of(folder, question)
            console.print(beside(answer, truth, keys))
            sections.append(Section(title=title, question=question, answer=answer, truth=truth, keys=keys))
        console.print("\n[bold]Asked again[/], a question is served from the ledger for nothing:")
        before = db.ledger.statement("patients").spent
        db.sql(QUESTIONS[0][1], epsilon=QUESTIONS[0][2])
        console.print(f"  charges before {before.charges}, after {db.ledger.statement('patients').spent.charges}")
        console.print("\n[bold]What is refused[/], before anything is read or paid:")
        for question in REFUSED:
            try:
                db.sql(question, epsilon=1)
            except hb.HubbubError as refusal:
                console.print(Text(str(refusal), style=ORANGE))
        console.print("\n[bold]Published once[/], asked as often as you like: stays by age (a recipe, and its report)")
        pictures = published(db, folder, console)
        console.print(f"\n[bold]A map[/] of where patients live, each counted once, at ε = {float(MAP):g}: see below")
        homes = mapped(db, folder)
        statement = db.ledger.statement("patients")
        checked = db.ledger.verify()
        console.print(
            f"\n[bold]The ledger[/]: {checked.entries} entries, chain and balances verified; "
            f"{statement.spent.charges} charges, {statement.odometer} of {statement.budget.filter.budget} spent."
        )
        written = page(folder / "report.html", sections, statement)
    console.print(f"See it with: hubbub budget {_near(folder / 'hospital.ledger')}")
    console.print(f"The report:  {_near(written)}")
    console.print(f"Ages:        {_near(pictures)}, by the recipe {_near(folder / 'publish.toml')}")
    console.print(f"The map:     {_near(homes)}, to be opened in a browser: drag, zoom, point at it")


def _near(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    main()
