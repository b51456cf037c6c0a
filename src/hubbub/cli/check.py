"""``hubbub check``: what the owner declared, compared with the data. Its numbers are exact, and for the owner alone."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.data import default_policy
from hubbub.cli.options import Json, PolicyFile

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.engines.duckdb.owner_check import CheckFinding, OwnerReport
    from hubbub.engines.postgres.server_check import ServerReport
    from hubbub.policy.tables import Policy
    from hubbub.session.engines import EngineChoice


def check(
    *,
    policy: PolicyFile = None,
    no_rows: Annotated[
        bool, typer.Option("--no-rows", help="Look at roles and constraints of servers alone, and read no row.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare every declaration with the data. For the owner: the numbers are exact, and not to be passed on.

    Of a PostgreSQL server it also says what the role can see beyond the policy, with the statements that mend it, which
    declarations its constraints enforce, and which settings are missing.

    Exit status: 0 every promise is kept; 1 one is broken, or a role can see too much; 2 the policy or the data cannot
    be read.
    """
    from hubbub.cli.owner import connect
    from hubbub.cli.printing import complain, note, progress, say
    from hubbub.engines.duckdb.engine import DuckDB
    from hubbub.engines.duckdb.owner_check import check as checked
    from hubbub.engines.public import schema_of
    from hubbub.policy.files.read import read_policy
    from hubbub.session.engines import look_and_choose
    from hubbub.session.opening import record, stamps

    file = policy or default_policy()
    with progress("Converting text") as done, DuckDB(standbys=1, progress=done) as engine:
        declared = read_policy(file, describe=lambda source: schema_of(engine, source))
    servers = _servers(declared, look_and_choose([table.source for table in declared.tables.values()]))
    if no_rows:
        _show_servers(servers, as_json=as_json)
        return
    before = stamps(declared)  # ahead of the rest: to connect is to convert text and to attach databases
    with progress("Converting text") as done, connect(declared, log=note, progress=done) as data:
        report = checked(declared, data.ask, left_out=data.left_out)
        read = data.files()
    record(file, report, before=before, read=read)
    if as_json:
        typer.echo(json.dumps(_as_json(report) | _servers_as_json(servers), indent=2))
    else:
        note("Exact numbers, for the owner alone: whoever sees them learns about single people.")
        say(_table(report))
        for server in servers:
            say("", *_lines(server))
    if not report.holds:
        broken = sum(finding.broken for finding in report.findings)
        complain(f"{broken} {'promise is' if broken == 1 else 'promises are'} broken.")
    if not _complain(servers) or not report.holds:
        raise typer.Exit(1)
    if not as_json:
        say("", "Every promise is kept.")


def _table(report: "OwnerReport") -> "Table":
    from hubbub.cli.printing import cell, table

    made = table(
        f"Version {report.version}",
        *("", "where", "declared", "against", "of", "what follows"),
        right=("against", "of"),
        kept=("", "against", "of"),
    )
    for one in report.findings:
        style = "red" if one.broken else "" if one.holds else "yellow"
        made.add_row(
            cell(_mark(one), style or "green"),
            cell(one.place),
            cell(one.fact),
            cell(f"{one.against:,}", style),
            cell(f"{one.out_of:,}"),
            cell("" if one.holds else one.remedy, style),
        )
    return made


def _servers(policy: "Policy", choice: "EngineChoice") -> "list[ServerReport]":
    from hubbub.policy.sources import SNAPSHOT

    if not any(table.source.format in SNAPSHOT for table in policy.tables.values()):
        return []
    from hubbub.engines.postgres.server_check import check_servers

    return check_servers(policy, is_pushed=choice.is_pushed)


def _show_servers(servers: "list[ServerReport]", *, as_json: bool) -> None:
    """Say what was found about servers, and nothing else."""
    from hubbub.cli.printing import say

    if not servers:
        raise typer.BadParameter("no table of the policy is a server's: there is nothing to look at.")
    if as_json:
        typer.echo(json.dumps(_servers_as_json(servers), indent=2))
    else:
        for server in servers:
            say(*_lines(server))
    if not _complain(servers):
        raise typer.Exit(1)


def _complain(servers: "list[ServerReport]") -> bool:
    """Say which roles are not fit to ask; return whether all are."""
    from hubbub.cli.printing import complain

    for server in servers:
        if not server.holds:
            complain(f"The role {server.role} of {server.place} is not fit to ask: see the statements that mend it.")
    return all(server.holds for server in servers)


def _lines(server: "ServerReport") -> list[str]:
    """Write what was found about a server, and the statements that mend it."""
    lines = [f"{server.place}, as {server.role}"]
    lines += [f"{'✓' if fact.is_enforced else '·'} {fact}" for fact in server.facts]
    lines += [f"· {warning}" for warning in server.warnings]
    lines += [f"✗ {excess.sentence}" for excess in server.excess]
    if server.statements:
        lines += ["", "To mend it, as the owner of the database:", *(f"  {one}" for one in server.statements)]
    return lines


def _servers_as_json(servers: "list[ServerReport]") -> dict[str, Any]:
    if not servers:
        return {}
    return {
        "servers": [
            {
                "place": server.place,
                "role": server.role,
                "holds": server.holds,
                "excess": [excess.sentence for excess in server.excess],
                "statements": list(server.statements),
                "facts": [
                    {"table": fact.table, "column": fact.column, "fact": fact.fact, "enforced": fact.is_enforced}
                    for fact in server.facts
                ],
                "warnings": list(server.warnings),
            }
            for server in servers
        ]
    }


def _mark(finding: "CheckFinding") -> str:
    return "✗" if finding.broken else "✓" if finding.holds else "·"


def _as_json(report: "OwnerReport") -> dict[str, Any]:
    return {
        "version": report.version,
        "fingerprint": report.fingerprint,
        "holds": report.holds,
        "findings": [
            {
                "table": one.table,
                "column": one.column,
                "fact": one.fact.value,
                "against": one.against,
                "out_of": one.out_of,
                "broken": one.broken,
            }
            for one in report.findings
        ],
    }
