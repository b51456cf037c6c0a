"""``python -m bench [name …]``: measure, print tables, and keep every figure in bench/results."""

import argparse
import sys
import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import (
    accounting,
    accuracy,
    analysts,
    bought,
    charges,
    compare,
    gate,
    intervals,
    keys,
    large,
    learn_bayes,
    learn_choices,
    learn_classify,
    learn_engine,
    learn_kmeans,
    learn_pca,
    learn_regression,
    learn_speed,
    ledger,
    map_scale,
    maps,
    noise,
    paths,
    peers_audit,
    postgres,
    quantiles,
    queries,
    scale,
    sparse,
    speeds,
    start,
    unknown,
    utility,
    warm,
    whole_error,
)
from bench.record import Bench, MissingInput, Row, keep

BENCHES: tuple[Bench, ...] = (
    noise.BENCH,
    gate.BENCH,
    ledger.BENCH,
    queries.BENCH,
    warm.BENCH,
    start.BENCH,
    accuracy.BENCH,
    accounting.BENCH,
    charges.BENCH,
    quantiles.BENCH,
    keys.BENCH,
    intervals.BENCH,
    unknown.BENCH,
    bought.BENCH,
    whole_error.BENCH,
    analysts.BENCH,
    paths.BENCH,
    postgres.BENCH,
    speeds.BENCH,
    utility.BENCH,
    maps.BENCH,
    scale.BENCH,
    learn_classify.BENCH,
    map_scale.BENCH,
    map_scale.LARGE,
    sparse.BENCH,
    learn_kmeans.BENCH,
    learn_regression.BENCH,
    learn_pca.BENCH,
    learn_bayes.BENCH,
    learn_choices.BENCH,
    learn_speed.BENCH,
    learn_engine.BENCH,
    compare.ACCURACY,
    compare.QUANTILES,
    large.BENCH,
    peers_audit.BENCH,
)
VERDICT = {True: "[green]holds[/]", False: "[red]falls short[/]", None: ""}


def figure(value: float) -> str:
    """Enough digits to compare by, and no more."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.1f}"
    return f"{value:.6g}" if abs(value) < 10 else f"{value:.2f}"


def table_of(bench: Bench, rows: list[Row]) -> Table:
    """All rows of a bench, one column a figure."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    table = Table(
        title=f"{bench.name}: {bench.about}",
        title_justify="left",
        caption="\n".join(bench.notes),
        caption_justify="left",
    )
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("target")
    table.add_column("")
    for row in rows:
        cells = [figure(row.figures[name]) if name in row.figures else "" for name in names]
        what = f"{row.what}\n[dim]{escape(row.remark)}[/]" if row.remark else row.what
        table.add_row(what, *cells, row.target, VERDICT[row.holds])
    return table


def measure(bench: Bench, console: Console) -> list[Row]:
    """Run one bench behind a progress bar."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    rows: list[Row] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(bench.name, total=bench.steps)
        for row in bench.run():
            rows.append(row)
            progress.update(task, advance=1, description=f"{bench.name}: {row.what}")
    return rows


def main() -> int:
    """Run the named benches, or all but the largest; 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(bench.name for bench in BENCHES))
    wanted = set(parser.parse_args().names)
    unknown = wanted - {bench.name for bench in BENCHES}
    if unknown:
        parser.error(f"no bench is called {', '.join(sorted(unknown))}")
    console = Console(width=None if sys.stdout.isatty() else 150)
    missed = 0
    for bench in BENCHES:
        if bench.name not in wanted if wanted else bench.named:
            continue
        start = time.perf_counter()
        try:
            rows = measure(bench, console)
        except MissingInput as why:
            console.print(f"{bench.name} is skipped. {why}\n", markup=False)
            continue
        console.print(table_of(bench, rows))
        kept = keep(bench, rows, seconds=time.perf_counter() - start)
        console.print(f"Kept in bench/results/{kept.name}\n", style="dim")
        missed += sum(row.holds is False for row in rows)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
