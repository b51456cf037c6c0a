"""``hubbub publish``: a recipe becomes a release, a report and a certificate."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.data import DataOptions, FileDeclarations
from hubbub.cli.options import Json, LedgerOption, Log, Principal

if TYPE_CHECKING:
    from hubbub.publish.marginals.table_strategy import Tables
    from hubbub.publish.recipe import Recipe
    from hubbub.publish.release.prospect import Prospect
    from hubbub.publish.release.published import Published

Compared = dict[str, "Prospect"]


def publish(
    *,
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="What is published, of which data, at which price.")],
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page with pictures, errors and certificate."),
    ] = None,
    as_json: Json = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would cost and how far it would be off; pay and read nothing."),
    ] = False,
    ledger: LedgerOption = None,
    principal: Principal = None,
    log: Log = None,
) -> None:
    """Publish cells as a recipe says: paid before anything is read, and free if it was published before.

    Exit status: 0 published, or explained; 2 refused; 3 the engine failed, and the charge stands.
    """
    from hubbub.cli.printing import say, show_clock
    from hubbub.publish.recipe import read_recipe

    read = read_recipe(recipe)
    with _data(read, ledger=ledger, principal=principal, log=log).open() as database:
        prospect = database.explain_publish(read.strategy, **read.wish)
        compared = _compare(read, prospect, database)
        if dry_run:
            _explain(prospect, compared, as_json=as_json)
            return
        began = time.monotonic()
        with show_clock(database.policy.limits.seconds):
            published = read.after(database.publish(read.strategy, **read.wish, key=read.key))
        seconds = time.monotonic() - began
    outputs = dict(read.outputs) | ({"report": report} if report is not None else {})
    for name in ("json", "parquet"):
        if name in outputs:
            published.save(outputs[name])
    if "certificate" in outputs:
        outputs["certificate"].write_text(published.certificate() + "\n", encoding="utf-8")
    if "report" in outputs:
        title = f"Published: {', '.join(axis.name for axis in read.domain.axes)}"
        page = _page(published, compared, title=title, seconds=seconds)
        outputs["report"].write_text(page, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(as_dict(published, compared, seconds, outputs), indent=2))
        return
    say(*repr(published).split("\n"))
    names = getattr(published, "names", None)
    many = f"{published.domain.size:,} cells" if names is None else f"{len(names):,} marginals"
    say(f"{many} in {seconds:.1f} s")
    say(*(f"{name}: {path}" for name, path in outputs.items()))


def _page(published: "Published | Tables", compared: Compared, *, title: str, seconds: float) -> str:
    from hubbub.publish.release.published import Published
    from hubbub.report import marginals
    from hubbub.report import published as cells

    if isinstance(published, Published):
        curves = cells.comparisons_of({name: one.curve for name, one in compared.items()})
        return cells.page_of(published, comparisons=curves, title=title, seconds=seconds)
    errors = {name: one.marginals for name, one in compared.items() if one.marginals is not None}
    return marginals.page_of(published, errors=errors, title=title, seconds=seconds)


def as_dict(
    published: "Published | Tables", compared: Compared, seconds: float, outputs: dict[str, Path]
) -> dict[str, Any]:
    """For programs: cells in the order of the axes, the last one's labels changing fastest; of marginals, which are
    many, what there is and how far it is off, the numbers being in the file that [output] names."""
    from hubbub.publish.release.published import Published

    own: dict[str, Any] = {}
    if isinstance(published, Published):
        deviations = published.deviations
        own["cells"] = published.cells.reshape(-1).tolist()
        own["deviations"] = None if deviations is None else deviations.reshape(-1).tolist()
    else:
        own["marginals"] = next(iter(compared.values())).to_dict()["marginals"]
    return {
        "axes": published.domain.to_json(),
        **own,
        "steps": list(published.steps),
        "expected": {name: _error(one) for name, one in compared.items()},
        "seconds": seconds,
        "outputs": {name: str(path) for name, path in outputs.items()},
        "stored": None if published.stored is None else published.stored.isoformat(),
        "certificate": json.loads(published.certificate()),
    }


def _data(recipe: "Recipe", *, ledger: str | None, principal: str | None, log: Path | None) -> DataOptions:
    said = recipe.data
    alone = FileDeclarations(
        unit=said.get("unit"),
        budget=said.get("budget"),
        budget_delta=said.get("budget_delta"),
        max_groups=said.get("max_groups"),
        max_rows=said.get("max_rows"),
        account=said.get("account"),
        version=said.get("version"),
    )
    place = ledger or said.get("ledger")
    if recipe.policy is not None:
        return DataOptions(file=None, policy=recipe.policy, ledger=place, principal=principal, log=log)
    return DataOptions(file=said["path"], policy=None, ledger=place, principal=principal, alone=alone, log=log)


def _compare(recipe: "Recipe", own: "Prospect", database: Any) -> Compared:
    """The strategy of the recipe, then the others, each under a name of its own. All of it is free."""
    found: Compared = {own.strategy.name: own}
    for strategy in recipe.compare:
        if strategy == recipe.strategy:
            continue
        name, number = strategy.name, 2
        while name in found:
            name, number = f"{strategy.name} {number}", number + 1
        found[name] = database.explain_publish(strategy, **recipe.wish)
    return found


def _error(one: "Prospect") -> Any:
    told = one.to_dict()
    return told["error"] if told["marginals"] is None else told["marginals"]


def _explain(prospect: "Prospect", compared: Compared, *, as_json: bool) -> None:
    from hubbub.cli.printing import cell, say, table

    if as_json:
        told = prospect.to_dict() | {"compared": {name: _error(one) for name, one in compared.items()}}
        typer.echo(json.dumps(told, indent=2))
        return
    say(*str(prospect).split("\n"))
    curves = {name: dict(one.curve) for name, one in compared.items() if one.curve}
    if len(curves) > 1:
        made = table("Expected error of a range (rms)", "cells", *curves, right=("cells", *curves))
        for many in sorted({size for curve in curves.values() for size in curve}):
            errors = (f"{curve[many]:,.4g}" if many in curve else "–" for curve in curves.values())
            made.add_row(cell(f"{many:,}"), *(cell(one) for one in errors))
        say("", made)
