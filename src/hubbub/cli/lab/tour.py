"""``hubbub tour``: through the lectures that Hubbub grew from, each step a small run with its table or picture."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.errors import HubbubError, ParameterError

if TYPE_CHECKING:
    from hubbub.cli.lab.tours.step import StepOutcome, TourStep


def tour(
    *,
    listed: Annotated[bool, typer.Option("--list", help="Print the steps, and end.")] = False,
    chosen: Annotated[
        list[str] | None, typer.Option("--step", metavar="NAME", help="Only this one; as often as needed.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the pictures there, too.")] = None,
) -> None:
    """Walk through the topics of the lectures: attacks on older ways, mechanisms, releases, learning.

    Everybody in it is made up. Each step takes seconds, and noise is drawn anew each time.
    """
    from hubbub.cli.lab.tours import STEPS
    from hubbub.cli.printing import say

    if listed:
        width = max(map(len, STEPS))
        say(*(f"{step.name:<{width}}  {step.title} (lecture {step.lecture})" for step in STEPS.values()))
        return
    unknown = [name for name in chosen or () if name not in STEPS]
    if unknown:
        raise ParameterError("--step", "one of hubbub tour --list", unknown[0])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    steps = [STEPS[name] for name in chosen or STEPS]
    for place, step in enumerate(steps, start=1):
        _show(step, place=place, many=len(steps), out=out)


def _show(step: "TourStep", *, place: int, many: int, out: Path | None) -> None:
    from hubbub.cli.printing import cell, console, prose, say, table

    console().rule(cell(f"{place} of {many} · {step.title}", "bold"))
    prose(step.about)
    start = time.perf_counter()
    seen = step.run()
    say("")
    if seen.rows:
        short = tuple(name for place, name in enumerate(seen.columns) if all(len(row[place]) < 24 for row in seen.rows))
        shown = table("", *seen.columns, kept=short)
        shown.title = None
        for row in seen.rows:
            shown.add_row(*(cell(one) for one in row))
        console().print(shown)
        say("")
    prose(seen.says)
    written = "" if out is None else _write_picture(seen, out / f"{step.name}.png")
    say(f"lecture {step.lecture} · hubbub tour --step {step.name} · {time.perf_counter() - start:.1f} s{written}", "")


def _write_picture(seen: "StepOutcome", path: Path) -> str:
    try:
        return f" · picture: {path}" if seen.picture(path) else ""
    except HubbubError as missing:
        return f" · {missing}"
