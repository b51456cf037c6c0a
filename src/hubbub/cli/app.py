"""The tree of commands, and how an error reaches a person: code first, exit status 2, or 3 after a charge."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.errors import EngineError, HubbubError, QueryError


class Root(TyperGroup):
    """Every HubbubError of every command ends here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except HubbubError as problem:
            from hubbub.cli.printing import complain

            complain(str(problem), pictured=isinstance(problem, QueryError))
            raise typer.Exit(3 if isinstance(problem, EngineError) else 2) from problem
        except KeyboardInterrupt as broken:
            from hubbub.cli.printing import complain

            complain(str(broken) or "Broken off.")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="hubbub",
    cls=Root,
    help="Learn about a crowd without learning about any person in it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from hubbub import __version__

        typer.echo(f"hubbub {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Learn about a crowd without learning about any person in it."""


def _grow() -> None:
    from hubbub.cli import advise, audit, budget, check, describe, init, ledger, publish, query
    from hubbub.cli.lab import anonymity, attack
    from hubbub.cli.lab.attack_people import add
    from hubbub.cli.lab.tour import tour

    app.command()(init.init)
    app.command()(check.check)
    app.command()(describe.describe)
    app.command()(query.explain)
    app.command()(query.query)
    app.command()(query.diagnose)
    app.command()(advise.advise)
    app.command()(publish.publish)
    app.command()(audit.audit)
    app.command()(tour)
    add(attack.app)
    app.add_typer(attack.app, name="attack")
    app.add_typer(anonymity.app, name="anonymity")
    app.add_typer(budget.app, name="budget")
    app.add_typer(ledger.app, name="ledger")


_grow()


def main() -> None:
    """Run the script ``hubbub``."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ε shows an escape, not a traceback
    app()
