"""Two pictures of the whole error on a generated hospital: intervals with and without what limits drop, and what limits
cost, as ``hubbub advise`` sees it.

Nobody in it exists, so the truth may stand beside the answers.
"""

from __future__ import annotations

import shutil
import sys
from fractions import Fraction
from pathlib import Path

import duckdb

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hubbub as hb
from examples import hospital
from examples.pictures import BLUE, GREEN, GREY, ORANGE, OUT, blank, save
from hubbub.ledger import Marks
from hubbub.query.answer.advice import Advice
from hubbub.query.missing.advising import Advised
from hubbub.session.database import Database

ASKED = "SELECT ward, count(*) AS stays FROM stays GROUP BY ward"
EPSILON = Fraction(1, 2)
LIMITS = hb.Limits(max_groups=2, max_rows=2, max_total_rows=hospital.MOST_STAYS)
"""Tight ones: a third of all stays lie beyond them."""
KINDS = (
    ("noise", "the noise alone", GREY),
    ("dropped", "and what limits drop", BLUE),
    ("whole", "the shortest", GREEN),
)


def opened(folder: Path, *, stays: int) -> Database:
    """The hospital under tight limits, with a fresh ledger."""
    shutil.rmtree(folder, ignore_errors=True)
    table, _ = hospital.build(folder, stays=stays)
    return hb.open(
        table,
        unit="patient_id",
        budget=Fraction(20),
        keys={"ward": list(hospital.WARDS)},
        limits=LIMITS,
        account="patients",
        ledger=folder / "hospital.ledger",
        marks=Marks(folder / "state"),
    )


def draw_intervals(db: Database, folder: Path, out: Path) -> Path:
    """Draw the intervals of one question three ways, and the truth."""
    with duckdb.connect() as connection:
        truth = dict(
            connection.execute(f"SELECT ward, count(*) FROM '{folder / 'stays.parquet'}' GROUP BY ward").fetchall()
        )
    figure = blank(8, 4.2)
    axes = figure.add_subplot()
    wards = sorted(truth, key=lambda ward: truth[ward])
    for place, (kind, label, colour) in enumerate(KINDS):
        told = {
            row["ward"]: row for row in db.sql(ASKED, epsilon=EPSILON + Fraction(place, 100), error=kind).to_dicts()
        }
        heights = [at + 0.25 * (1 - place) for at in range(len(wards))]
        axes.hlines(
            heights,
            [told[ward]["stays_low"] for ward in wards],
            [told[ward]["stays_high"] for ward in wards],
            color=colour,
            linewidth=3,
            label=label,
        )
        axes.plot([told[ward]["stays"] for ward in wards], heights, "o", color=colour, markersize=4)
    axes.plot([truth[ward] for ward in wards], range(len(wards)), "|", color=ORANGE, markersize=24, label="truth")
    axes.set_yticks(range(len(wards)), wards)
    axes.set_xlabel(f"stays at ε = {float(EPSILON):g}, of a patient at most 2 a ward in 2 wards")
    axes.set_title("95% intervals with and without what limits drop")
    axes.legend(loc="lower right")
    return save(figure, "whole_error.png", out)


def draw_limits(advice: Advice, out: Path) -> Path:
    """Draw the error that each limit would give."""
    figure = blank(8, 3.6)
    kinds = ((Advised.ROWS, "max_rows, in a ward"), (Advised.GROUPS, "max_groups, of wards"))
    for place, (advised, title) in enumerate(kinds):
        axes = figure.add_subplot(1, 2, 1 + place)
        (found,) = (one for one in advice.limits if one.advised is advised)
        limits = [each.limit for each in found.errors if each.limit <= 20]
        errors = found.errors[: len(limits)]
        axes.plot(limits, [max(1.0, each.lost) for each in errors], color=ORANGE, label="dropped")
        axes.plot(limits, [each.noise for each in errors], color=BLUE, label="noise")
        axes.plot(limits, [each.whole for each in errors], color=GREY, linewidth=3, alpha=0.5, label="whole error")
        best = min(errors, key=lambda each: each.whole)
        axes.plot([best.limit], [best.whole], "o", color=GREEN, label=f"the least: {best.limit}")
        axes.set_yscale("log")
        axes.set_xlabel(title)
        axes.legend(loc="upper right")
    return save(figure, "limits.png", out)


def main(stays: int = hospital.STAYS, folder: Path = OUT / "whole", out: Path = OUT) -> tuple[Path, Path]:
    """Ask, buy advice and draw."""
    with opened(folder, stays=stays) as db:
        first = draw_intervals(db, folder, out)
        advice = db.advise(epsilon=1, price=EPSILON, by=["ward"])
        print(advice)
        return first, draw_limits(advice, out)


if __name__ == "__main__":
    main()
