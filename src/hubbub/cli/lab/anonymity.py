"""``hubbub anonymity``: how anonymous a table is, or make it so; with what that does not cover, each time."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.lab.attack import FOUND, AsText, Html
from hubbub.cli.options import Json, exact
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.anonymity import Hierarchy, Wanted

app = typer.Typer(
    help="k-anonymity, l-diversity, t-closeness: measure a table, or make one satisfy them.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A table (CSV, Parquet). It is read as it is.")]
Quasi = Annotated[
    list[str], typer.Option("--quasi", metavar="COLUMN", help="What an attacker may know; as often as needed.")
]
Sensitive = Annotated[str | None, typer.Option("--sensitive", metavar="COLUMN", help="What is to be kept from them.")]
Order = Annotated[
    list[str] | None,
    typer.Option("--order", metavar="VALUE", help="Sensitive values from first to last, where their order counts."),
]
Distinct = Annotated[int | None, typer.Option("--l", min=1, help="Distinct sensitive values in each group.")]
Entropy = Annotated[float | None, typer.Option("--entropy", min=1, help="Entropy l-diversity.")]
Recursive = Annotated[str | None, typer.Option("--recursive", metavar="C,L", help="Recursive (c, l)-diversity.")]
Close = Annotated[float | None, typer.Option("--t", min=0, max=1, help="The greatest distance from all rows.")]


@app.command()
def measure(
    *,
    file: File,
    quasi: Quasi,
    sensitive: Sensitive = None,
    order: Order = None,
    text: AsText = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Rows that look alike, at least.")] = 1,
    distinct: Distinct = None,
    entropy: Entropy = None,
    recursive: Recursive = None,
    close: Close = None,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Say how anonymous a table is. Its numbers are exact, and for the owner alone.

    Exit status: 0 it is as wanted; 1 it is not; 2 refused.
    """
    from hubbub.anonymity import measure as measured
    from hubbub.cli.lab.tables import read_columns

    wanted = _requirements(k=k, distinct=distinct, entropy=entropy, recursive=recursive, close=close)
    found = measured(read_columns(file, text=text or ()), quasi=quasi, sensitive=sensitive, order=order)
    good = found.satisfies(wanted)
    _show(found.finding(f"Anonymity of {file.name}"), as_json=as_json, html=html)
    if not good:
        from hubbub.cli.printing import complain

        complain(f"It does not satisfy {wanted}.")
        raise typer.Exit(FOUND)


@app.command()
def make(
    *,
    file: File,
    quasi: Quasi,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A new CSV file.")],
    k: Annotated[int, typer.Option("--k", min=1, help="Rows that look alike, at least.")],
    sensitive: Sensitive = None,
    order: Order = None,
    text: AsText = None,
    distinct: Distinct = None,
    entropy: Entropy = None,
    recursive: Recursive = None,
    close: Close = None,
    levels: Annotated[
        list[str] | None,
        typer.Option("--levels", metavar="COLUMN=HOW", help="digits:5, or ranges:5,10,20; without any, cuts are made."),
    ] = None,
    suppress: Annotated[float, typer.Option("--suppress", min=0, max=1, help="With levels: rows to leave out.")] = 0.0,
    keep: Annotated[list[str] | None, typer.Option("--keep", metavar="COLUMN", help="Another column to keep.")] = None,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Make a table that satisfies a definition, and say what that does not cover.

    Exit status: 0 done; 2 refused.
    """
    from hubbub.anonymity import make as made
    from hubbub.cli.lab.tables import pairs, read_columns, write_rows

    wanted = _requirements(k=k, distinct=distinct, entropy=entropy, recursive=recursive, close=close)
    hierarchies = {name: _hierarchy(how) for name, how in pairs(levels, option="--levels").items()}
    found = made(
        read_columns(file, text=text or ()),
        quasi=quasi,
        wanted=wanted,
        sensitive=sensitive,
        order=order,
        hierarchies=hierarchies or None,
        suppress=suppress,
        keep=keep or (),
    )
    write_rows(found.rows, out)
    _show(found.finding(), as_json=as_json, html=html)


def _requirements(
    *, k: int, distinct: int | None, entropy: float | None, recursive: str | None, close: float | None
) -> "Wanted":
    from hubbub.anonymity import Wanted

    ratio: tuple[float, int] | None = None
    if recursive is not None:
        c, sign, many = recursive.partition(",")
        if not sign or not many.strip().isdigit():
            raise ParameterError("--recursive", "c and l, such as 3,2", recursive)
        ratio = (float(exact(c.strip())), int(many))
    return Wanted(k=k, l=distinct, entropy=entropy, recursive=ratio, t=close)


def _hierarchy(how: str) -> "Hierarchy":
    from hubbub.anonymity import Digits, Ranges

    kind, _, rest = how.partition(":")
    numbers: list[Fraction] = [exact(one.strip()) for one in rest.split(",") if one.strip()]
    if kind == "digits" and len(numbers) == 1:
        return Digits(int(numbers[0]))
    if kind == "ranges" and numbers:
        return Ranges(tuple(float(one) for one in numbers))
    raise ParameterError("--levels", "column=digits:LENGTH or column=ranges:WIDTH,WIDTH,…", how)


def _show(found: Any, *, as_json: bool, html: Path | None) -> None:
    """As an attack's finding, without its exit status: what is measured is judged by what was wanted."""
    from dataclasses import replace

    from hubbub.cli.lab.attack import show

    show(replace(found, works=False), as_json=as_json, html=html)
