"""docs/cli.md has every command and option, and docs/sql.md every function; neither has more."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from hubbub.cli.app import app
from hubbub.query.aggregates import table
from hubbub.query.functions import FUNCTIONS
from tests.query.asking import read

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(group: Any, *above: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)
        else:
            yield " ".join((*above, name)), command


ROOT: Any = typer.main.get_command(app)
COMMANDS = dict(commands(ROOT))


def options(command: Any) -> set[str]:
    return {word for one in command.params for word in one.opts if word.startswith("--")} - {"--help"}


def sections() -> dict[str, str]:
    parts = re.split(r"^#{2,3} `hubbub ([a-z ]+)`$", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described(name: str) -> None:
    section = sections()[name]
    missing = {option for option in options(COMMANDS[name]) if f"`{option}`" not in section}
    assert missing == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_described_that_does_not_exist(name: str) -> None:
    told = set(re.findall(r"`(--[a-z-]+)`", sections()[name].partition("\n#")[0]))
    beside = {"--key", "--csv", "--log"} if name == "explain" else set()
    assert told - beside <= options(COMMANDS[name])


def test_no_command_is_described_that_does_not_exist() -> None:
    assert set(sections()) == {*COMMANDS, "budget", "ledger"}


def test_the_options_of_the_command_itself() -> None:
    told = (DOCS / "cli.md").read_text().partition("\n## ")[0]
    assert {option for option in options(ROOT) if option not in told} == set()


SPELT = {
    **{name: name.upper() for name in ("and", "or", "not", "case", "in", "like")},
    "is_null": "IS NULL",
    **{"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "quotient": "//", "remainder": "%"},
    "negate": "-x",
    "to_real": "CAST(x AS …)",
    "to_integer": "round(x)",
    **{name: f"{name}(x)" for name in ("abs", "floor", "ceil", "sqrt", "ln", "exp")},
    **{name: f"{name}(a, b, …)" for name in ("least", "greatest", "coalesce")},
    "nullif": "nullif(a, b)",
    **{name: f"{name}(s)" for name in ("lower", "upper", "trim", "length")},
    "starts_with": "starts_with(s, 'a')",
    "substring": "substring(s, from, length)",
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "weekday": "dayofweek",
    **dict.fromkeys(
        ("start_of_year", "start_of_quarter", "start_of_month", "start_of_week", "start_of_day"), "date_trunc"
    ),
    "days_between": "d - e",
}


def test_every_function_is_described() -> None:
    assert set(SPELT) == set(FUNCTIONS)
    page = (DOCS / "sql.md").read_text()
    table = page.partition("## Functions")[2].partition("\n## ")[0]
    code = " ".join(re.findall(r"`([^`]+)`", table))
    assert {name for name, spelt in SPELT.items() if spelt not in code} == set()


def test_every_aggregate_is_described() -> None:
    section = (DOCS / "sql.md").read_text().partition("## Aggregates")[2].partition("\n## ")[0]
    names = {one.name for one in table.FUNCTIONS} - {"count distinct units"} | {"count(DISTINCT unit)"}
    assert {name for name in names if f"`{name}" not in section} == set()


@pytest.mark.parametrize(
    "condition",
    [
        "age // 2 = 1 AND age % 2 = 1 AND mod(age, 2) = 1 AND -age < 1 AND abs(age) > 1",
        "least(age, points) < greatest(age, points, 3) AND ifnull(points, 1) = 1 AND nullif(age, 2) = 3",
        "floor(cost) = 1 AND ceil(cost) = 2 AND round(cost) = 1 AND sqrt(cost) > 1 AND ln(cost) > 1 AND exp(cost) > 1",
        "ward NOT LIKE 'a%_' AND starts_with(ward, 'a') AND substring(ward, 1, 2) = 'ab' AND ward NOT IN ('x')",
        "urgent IS TRUE AND urgent IS NOT NULL AND if(urgent, true, false) AND CAST(urgent AS INTEGER) = 1",
        "dayofweek(day) = 0 AND extract(month FROM day) = 1 AND date_trunc('week', seen) = DATE '2026-01-05'",
        "day - DATE '2026-01-01' > 5 AND seen::DATE = '2026-01-01' AND seen > TIMESTAMP '2026-01-31 12:00:00'",
        "TRY_CAST(cost AS BIGINT) = 1 AND CAST(age AS DOUBLE) BETWEEN 0 AND 5.5 AND length(trim(lower(ward))) = 1",
    ],
)
def test_what_the_page_spells_is_read(condition: str) -> None:
    assert read(f"SELECT count(*) FROM stays WHERE {condition}").asked
