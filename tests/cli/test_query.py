"""``hubbub query`` and ``hubbub explain``, over real files and the real engine."""

import csv
import io
import json
from pathlib import Path

import pytest

from hubbub.ledger import Ledger, Marks
from tests.cli.conftest import Run
from tests.cli.hospital import POLICY, built

PEOPLE = "SELECT count(DISTINCT patient_id) AS people FROM stays"
BY_WARD = "SELECT ward, count(*) AS n, avg(cost) AS mean FROM stays GROUP BY ward"
FILE = ("--unit", "patient_id", "--budget", "5", "--ledger", "one.ledger")


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def entries(path: Path) -> int:
    with Ledger(path, marks=Marks(path.parent / "state"), writes=False) as ledger:
        return len(list(ledger.entries()))


def test_an_answer_is_a_table_with_error_bars_and_its_price(run: Run, clinic: Path) -> None:
    done = run("query", BY_WARD, "--epsilon", "2")
    assert done.exit_code == 0, done.stderr
    header, rule, north, south, empty, footer = done.stdout.splitlines()
    assert header.split() == ["ward", "n", "mean"]
    assert set(rule) == {"─", " "}
    assert (north.split()[0], south.split()[0], empty) == ("north", "south", "")
    assert all(" ± " in row for row in (north, south))
    assert footer == (
        "± 95% · of each patient_id: at most 3 rows a group; values of avg(cost) in 0 … 100; rows and values beyond "
        "are not in the interval · price in all ε = 2 · entry 3 of account 'patients' · fresh"
    )
    assert done.stderr == ""


def test_all_rows_are_printed_however_many(run: Run, clinic: Path) -> None:
    done = run("query", "SELECT day(day) AS d, count(*) AS n FROM stays GROUP BY d, month(day)", "--epsilon", "1")
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2 + 32 * 13 + 2


def test_json_has_numbers_intervals_price_and_entry(run: Run, clinic: Path) -> None:
    read = json.loads(run("query", BY_WARD, "--policy", clinic, "--epsilon", "1/3", "--json").stdout)
    assert read["columns"] == ["ward", "n", "mean"]
    assert [row[0] for row in read["rows"]] == ["north", "south"]
    for row, low, high in zip(read["rows"], read["lows"], read["highs"], strict=True):
        assert low[0] is None
        assert high[0] is None
        assert 0 <= low[1] <= row[1] <= high[1]
        assert 0 <= low[2] <= high[2] <= 100
    assert (read["confidence"], read["account"], read["entry"]) == (0.95, "patients", 3)
    assert read["price"]["delta"] == "0/1"
    assert read["certificate"]["entry"] == 3
    assert read["certificate"]["epsilon"] == read["price"]["epsilon"]


def test_dates_in_json_and_csv(run: Run, clinic: Path) -> None:
    sql = "SELECT day, count(*) AS n FROM stays WHERE day IN (DATE '2026-01-05', DATE '2026-01-06') GROUP BY day"
    read = json.loads(run("query", sql, "--epsilon", "1", "--json").stdout)
    assert [row[0] for row in read["rows"]] == ["2026-01-05", "2026-01-06"]
    rows = list(csv.DictReader(io.StringIO(run("query", sql, "--epsilon", "1", "--csv").stdout)))
    assert [row["day"] for row in rows] == ["2026-01-05", "2026-01-06"]
    assert [int(row["n"]) for row in rows] == [row[1] for row in read["rows"]]
    assert [[int(row["n_low"]), int(row["n_high"])] for row in rows] == [
        [low[1], high[1]] for low, high in zip(read["lows"], read["highs"], strict=True)
    ]


def test_csv_guards_what_a_spreadsheet_would_run(run: Run, clinic: Path) -> None:
    sql = "SELECT ward AS \"=w\", count(*) AS n FROM stays WHERE ward IN ('=1+1', 'north') GROUP BY ward"
    done = run("query", sql, "--epsilon", "1", "--csv")
    assert done.stdout.splitlines()[0] == "'=w,n,n_low,n_high"
    assert done.stdout.splitlines()[1].startswith("'=1+1,")
    assert "apostrophe" in done.stderr
    assert run("query", PEOPLE, "--epsilon", "1", "--csv").stderr == ""


def test_the_same_question_is_paid_once(run: Run, clinic: Path) -> None:
    first = run("query", PEOPLE, "--epsilon", "0.5").stdout
    before = entries(clinic.parent / "clinic.ledger")
    again = run("query", PEOPLE.lower(), "--epsilon", "0.5").stdout.rstrip("\n")
    table, said = again.split(" · served again, stored ")
    assert table == first.rstrip("\n").removesuffix(" · fresh")
    assert said.endswith(" UTC")
    assert json.loads(run("query", PEOPLE, "--epsilon", "0.5", "--json").stdout)["stored"].startswith(said[:10])
    assert json.loads(run("query", BY_WARD, "--epsilon", "0.5", "--json").stdout)["stored"] is None
    assert entries(clinic.parent / "clinic.ledger") == before + 2


def test_a_key_belongs_to_one_question(run: Run, clinic: Path) -> None:
    assert run("query", PEOPLE, "--epsilon", "0.5", "--key", "k").exit_code == 0
    done = run("query", BY_WARD, "--epsilon", "0.5", "--key", "k")
    assert done.exit_code == 2
    assert done.stderr.startswith("[key-conflict] ")


@pytest.mark.parametrize("command", ["query", "explain", "diagnose"])
def test_whoever_has_no_grant_is_refused(run: Run, clinic: Path, command: str) -> None:
    asked = (command, BY_WARD, "--epsilon", "0.5", "--principal", "ann")
    for opened in (False, True):
        done = run(*asked)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr == "[no-grant] 'ann' has no grant on account 'patients'. Ask its owner for one: " + (
            "hubbub budget grant.\n"
        )
        if not opened:
            run("explain", PEOPLE, "--epsilon", "0.5")  # the owner opens the account
    run("budget", "grant", "clinic.ledger", "patients", "ann")
    assert run(*asked).exit_code == 0
    run("budget", "revoke", "clinic.ledger", "patients", "ann")
    assert run(*asked).stderr.startswith("[no-grant] ")


def test_a_principal_is_shown_what_it_can_spend_itself(run: Run, clinic: Path) -> None:
    run("query", PEOPLE, "--epsilon", "3")
    run("budget", "grant", "clinic.ledger", "patients", "ann", "--epsilon", "2")
    asked = ("explain", PEOPLE, "--epsilon", "0.5")
    assert "price       ε = 0.5 of ε = 2 left; ε = 1.5 afterwards" in run(*asked, "--principal", "ann").stdout
    assert "price       ε = 0.5 of ε = 7 left" in run(*asked).stdout


def test_what_does_not_fit_is_refused_and_costs_nothing(run: Run, clinic: Path) -> None:
    done = run("query", PEOPLE, "--epsilon", "11")
    assert done.exit_code == 2
    assert done.stderr.startswith("[budget-exceeded] ")
    assert done.stdout == ""
    assert entries(clinic.parent / "clinic.ledger") == 2


def test_a_refused_question_is_shown_with_carets(run: Run, clinic: Path) -> None:
    done = run("query", "SELECT count(*)\nFROM stays WHERE colour = 'red\u202e'", "--epsilon", "1")
    assert done.exit_code == 2
    first, line, caret = done.stderr.splitlines()
    assert first.startswith("[unknown-name] There is no column 'colour'.")
    assert line == "    FROM stays WHERE colour = 'red\\u202e'"
    assert caret.strip().strip("^") == ""
    assert line[caret.index("^") :].startswith("colour")


def test_hostile_keys_cannot_draw(run: Run, clinic: Path) -> None:
    sql = "SELECT ward, count(*) AS \"[red]n\u202e\" FROM stays WHERE ward IN ('[b]\u2028x') GROUP BY ward"
    done = run("query", sql, "--epsilon", "1")
    assert done.exit_code == 0, done.stderr
    assert "[red]n" in done.stdout
    assert "[b]" in done.stdout
    assert not {"\u202e", "\u2028", "\x1b"} & set(done.stdout)


def test_a_failing_engine_exits_with_3_and_the_charge_stands(run: Run, clinic: Path) -> None:
    clinic.write_text(POLICY.replace("[limits]", "[limits]\nseconds = 0.0001"))
    done = run("query", PEOPLE, "--epsilon", "1", "--log", "owner.log")
    assert done.exit_code == 3
    assert done.stderr == "[engine-failed] The engine could not answer. The charge stands; ask the owner.\n"
    assert "0.0001 seconds" in Path("owner.log").read_text()
    assert entries(clinic.parent / "clinic.ledger") == 4, "the charge, and that the engine failed"
    clinic.write_text(POLICY)
    again = run("query", PEOPLE, "--epsilon", "1")
    assert again.exit_code == 0
    assert again.stdout.endswith("entry 3 of account 'patients' · fresh\n")


def test_after_three_failures_a_principal_is_refused_with_2_until_it_is_thawed(run: Run, clinic: Path) -> None:
    ledger = clinic.parent / "clinic.ledger"
    assert run("budget", "open", ledger, "patients", "--epsilon", "10").exit_code == 0
    assert run("budget", "grant", ledger, "patients", "ann").exit_code == 0
    asked = ("query", PEOPLE, "--epsilon", "1", "--principal", "ann")
    clinic.write_text(POLICY.replace("[limits]", "[limits]\nseconds = 0.0001"))
    assert [run(*asked).exit_code for _ in range(4)] == [3, 3, 3, 2]
    clinic.write_text(POLICY)
    refused = run(*asked)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("[frozen] 'ann' is frozen on account 'patients': the engine failed 3 times")
    assert run("budget", "thaw", ledger, "patients", "ann").exit_code == 0
    assert run(*asked).exit_code == 0


def test_a_public_table_that_is_gone_costs_nothing(run: Run, clinic: Path) -> None:
    sql = "SELECT floor, count(*) AS n FROM stays JOIN wards ON stays.ward = wards.ward GROUP BY floor"
    assert run("explain", sql, "--epsilon", "1").exit_code == 0
    Path("wards.csv").write_bytes(b"\xff\xfe\n" * 9)
    done = run("query", sql, "--epsilon", "1")
    assert done.exit_code == 2
    assert done.stderr.startswith("[policy] ")
    assert entries(clinic.parent / "clinic.ledger") == 2


def test_a_single_file_says_on_the_command_line_what_a_policy_would(run: Run, clinic: Path) -> None:
    sql = "SELECT ward, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward"
    done = run(
        *("query", sql, "stays.parquet", "--epsilon", "1", *FILE, "--max-groups", "2", "--max-rows", "3"),
        *("--column", 'ward = {keys = ["north"], missing_key = true}', "--column", "cost = {bounds = [0, 1.5]}"),
        *("--account", "us", "--json"),
    )
    assert done.exit_code == 0, done.stderr
    read = json.loads(done.stdout)
    assert [row[0] for row in read["rows"]] == ["north", None]
    assert read["account"] == "us"
    assert read["certificate"]["version"] == "1"
    later = run("query", PEOPLE, "stays.parquet", "--epsilon", "1", *FILE[:2], *FILE[4:], "--account", "us")
    assert later.exit_code == 0, later.stderr


def test_without_a_ledger_it_is_where_the_policy_is(run: Run, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic.write_text(POLICY.replace('ledger = "clinic.ledger"\n', ""))
    (clinic.parent / "elsewhere").mkdir()
    monkeypatch.chdir(clinic.parent / "elsewhere")
    assert run("query", PEOPLE, "--policy", clinic, "--epsilon", "1").exit_code == 0
    assert (clinic.parent / "hubbub.ledger").exists()
    named = run("query", PEOPLE, "--policy", clinic, "--epsilon", "1", env={"HUBBUB_LEDGER": "named.ledger"})
    assert named.exit_code == 0
    assert Path("named.ledger").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("query", PEOPLE, "stays.parquet", "--policy", "hubbub.toml"), "not both"),
        (("query", PEOPLE, "--unit", "patient_id", "--max-rows", "3"), "--unit --max-rows"),
        (("query", PEOPLE, "hubbub.toml", "--column", "x = {}"), "--column"),
        (("query", PEOPLE, "stays.parquet"), "--unit"),
        (("query", PEOPLE, "stays.parquet", "--unit", "patient_id"), "--budget"),
        (("query", PEOPLE, "stays.parquet", *FILE, "--column", "cost"), "--column"),
        (("query", PEOPLE, "stays.parquet", *FILE, "--column", "cost = 1"), "--column"),
        (("query", PEOPLE, "stays.parquet", *FILE, "--column", "cost = {bound = [0, 1]}"), "has no 'bound'"),
        (("query", PEOPLE, "--json", "--csv"), "not both"),
        (("query", PEOPLE, "none.parquet", *FILE), "[policy]"),
        (("query", PEOPLE, "hubbub.toml", "--epsilon", "0"), "[invalid-parameter]"),
    ],
)
def test_what_is_not_said_clearly_is_refused(
    run: Run, clinic: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = run(*arguments, *(() if "--epsilon" in arguments else ("--epsilon", "1")))
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.replace("│", " ").split())
    assert not Path("one.ledger").exists()


def test_without_a_policy_in_the_folder_it_says_how_to_get_one(run: Run, clinic: Path) -> None:
    clinic.unlink()
    for command in (("query", PEOPLE, "--epsilon", "1"), ("explain", PEOPLE, "--epsilon", "1"), ("check",)):
        done = run(*command)
        assert done.exit_code == 2
        assert "hubbub init" in " ".join(done.output.replace("│", " ").split())


def test_a_file_that_is_none_is_no_charge(run: Run, clinic: Path) -> None:
    Path("stays.parquet").write_text("not parquet")
    done = run("query", PEOPLE, "--epsilon", "1")
    assert done.exit_code == 2
    assert done.stderr.startswith("[policy] ")
    assert "stays.parquet could not be read" in done.stderr


def test_a_question_from_standard_input(run: Run, clinic: Path) -> None:
    assert "people" in run("query", "-", "--epsilon", "1", input=PEOPLE).stdout


def test_explain_tells_the_price_and_spends_nothing(run: Run, clinic: Path) -> None:
    done = run("explain", BY_WARD, "--epsilon", "2")
    assert done.exit_code == 0, done.stderr
    for text in ("GROUP BY ward", "in at most 2 of 2 groups", "count(*): ± ", "values clamped to 0 … 100"):
        assert text in done.stdout
    assert done.stdout.splitlines()[-1].startswith("price ")
    assert done.stdout.endswith("of ε = 10 left; ε = 8 afterwards\n")
    assert entries(clinic.parent / "clinic.ledger") == 2
    told = json.loads(run("explain", BY_WARD, "--epsilon", "20", "--json").stdout)
    assert (told["fits"], told["groups"], told["account"]) == (False, 2, "patients")
    refused = run("explain", "SELECT * FROM stays", "--epsilon", "1")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("[not-allowed] ")
