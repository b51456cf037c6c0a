"""``hubbub ledger``: verify, show, export, report, adopt, forget, as a person sees them."""

import csv
import io
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.export import guard
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.entry import GENESIS, chain_hash
from tests.cli.conftest import EVIL, Run, asked
from tests.ledger.sample import Draft, damage, forged


def fresh(path: Path, state: str = "state") -> Marks:
    return Marks(path.parent / state)


def test_verify_says_what_was_checked(run: Run, ledger: Path) -> None:
    done = run("ledger", "verify", ledger)
    with Ledger(ledger, marks=fresh(ledger), writes=False) as opened:
        last = list(opened.entries())[-1]
    assert done.exit_code == 0
    assert done.output == (
        f"The ledger is whole: 6 entries, 1 account; every cap holds and every balance agrees.\nHead: {last.hash}\n"
    )


def test_verify_names_the_first_bad_entry_and_exits_with_1(run: Run, ledger: Path) -> None:
    damage(ledger, "UPDATE entries SET body = replace(body, '41', '42') WHERE seq = 5")
    done = run("ledger", "verify", ledger)
    assert done.exit_code == 1
    assert done.stderr.startswith("[ledger-corrupt] Entry 5 is damaged: ")
    assert done.stderr.count("\n") == 1


def test_verify_names_an_entry_before_the_damaged_end(run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(ledger, "UPDATE entries SET time = time + 1 WHERE seq IN (2, 6)")
    monkeypatch.setattr("hubbub.ledger.stores.opening._TAIL", 1)
    assert run("ledger", "verify", ledger).stderr.startswith("[ledger-corrupt] Entry 2 is damaged")


def test_verify_finds_a_balance_that_was_lowered(run: Run, ledger: Path) -> None:
    damage(ledger, "UPDATE holders SET loss = loss - 1 WHERE kind = 'principal'")
    done = run("ledger", "verify", ledger)
    assert done.exit_code == 1
    assert "table of holders" in done.stderr


def test_a_restored_backup_is_refused_until_it_is_adopted(run: Run, ledger: Path, tmp_path: Path) -> None:
    backup = shutil.copy(ledger, tmp_path / "backup.db")
    with Ledger(ledger, marks=fresh(ledger)) as opened:
        opened.reserve(asked("one more"))
    for name in (f"{ledger}-wal", f"{ledger}-shm"):
        Path(name).unlink(missing_ok=True)
    shutil.copy(backup, ledger)
    done = run("ledger", "verify", ledger)
    assert done.exit_code == 2
    assert done.stderr.startswith("[ledger-rolled-back] ")
    refused = run("ledger", "adopt", ledger, input="n\n")
    assert refused.exit_code == 1
    assert "ends at entry 6; this machine has seen entry 7 of it" in refused.output
    assert run("budget", ledger).exit_code == 2
    adopted = run("ledger", "adopt", ledger, input="y\n")
    assert adopted.exit_code == 0
    assert run("budget", ledger).exit_code == 0
    assert run("ledger", "verify", ledger).exit_code == 0


def test_a_lost_ledger_is_forgotten_only_on_request(run: Run, ledger: Path) -> None:
    for name in (ledger, Path(f"{ledger}-wal"), Path(f"{ledger}-shm")):
        name.unlink(missing_ok=True)
    again = ("budget", "open", ledger, "people", "--epsilon", "1")
    assert run(*again).stderr.startswith("[ledger-rolled-back] ")
    assert run("ledger", "forget", ledger, input="n\n").exit_code == 1
    assert run(*again).exit_code == 2
    assert run("ledger", "forget", ledger, "--yes").output.endswith("Forgotten.\n")
    assert run(*again).exit_code == 0
    assert "no ledger" in run("ledger", "forget", f"{ledger}-other").output


def test_show_lists_the_newest_entries(run: Run, ledger: Path) -> None:
    done = run("ledger", "show", ledger, "--last", "2")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert [line.split()[0] for line in lines[2:] if line[:6].strip()] == ["5", "6"]
    assert "of entry 4" in done.output
    assert "ann on people: how old" in done.output
    assert "\x1b" not in done.output


def test_show_of_one_account_follows_its_charges(run: Run, ledger: Path) -> None:
    run("budget", "open", ledger, "staff", "--epsilon", "1")
    people, staff = (run("ledger", "show", ledger, "--account", name).output for name in ("people", "staff"))
    assert "of entry 4" in people
    assert "staff" not in people
    assert len(staff.splitlines()) == 3
    assert run("ledger", "show", ledger, "--account", "x").stderr.startswith("[unknown-account] ")


def test_show_one_entry_in_full(run: Run, ledger: Path) -> None:
    done = run("ledger", "show", ledger, "--entry", "4")
    body = json.loads(done.output.partition("\n{")[2].join(["{", ""]))
    assert body["question"] == EVIL
    assert "\x1b" not in done.output
    assert "\u202e" not in done.output
    assert run("ledger", "show", ledger, "--entry", "7").stderr.startswith("[invalid-parameter] entry must be one of")


def test_hostile_text_is_printed_as_escapes(run: Run, ledger: Path) -> None:
    for command in ("show", "report"):
        done = run("ledger", command, ledger)
        assert done.exit_code == 0
        assert "\x1b" not in done.output
        assert "\u202e" not in done.output
        assert "\\x1b[31m" in "".join(done.output.split())
        assert max(map(len, done.output.splitlines()[1:])) <= 80


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_keeps_every_entry_so_that_the_chain_can_be_checked(run: Run, ledger: Path, form: str) -> None:
    text = run("ledger", "export", ledger, "--format", form).output
    assert text.isascii()
    records = [json.loads(line) for line in text.splitlines()] if form == "jsonl" else json.loads(text)["entries"]
    link = GENESIS
    for seq, record in enumerate(records, start=1):
        link = chain_hash(link, seq=seq, time=record["time"], kind=record["kind"], body=record["body"])
        assert (record["seq"], record["hash"]) == (seq, link)
        assert json.loads(record["body"]) == record["content"]
    assert len(records) == 6
    assert records[3]["content"]["question"] == EVIL


def test_csv_cannot_run_as_a_formula_and_says_so(run: Run, ledger: Path) -> None:
    with Ledger(ledger, marks=fresh(ledger)) as opened:
        opened.reserve(asked("=HYPERLINK(1)", version="@v"))
    done = run("ledger", "export", ledger, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [int(row["entry"]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert (rows[6]["question"], rows[6]["version"]) == ("'=HYPERLINK(1)", "'@v")
    assert rows[4]["answer"] == "'=41"
    assert rows[3]["question"] == "how many\\x1b[31m [bold]x[/bold] \\u202egnirts\\n=1"
    assert float(rows[3]["loss"]) == pytest.approx(1 / 800)
    assert not any(value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
    assert "apostrophe" in done.stderr


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "＝1", " =1"])
def test_everything_that_begins_like_a_formula_is_guarded(text: str) -> None:
    assert guard(text).startswith("'")


@pytest.mark.parametrize("text", ["", "x=1", "1-1", "\t=1", "\r=1"])
def test_other_text_is_left_but_for_what_does_not_print(text: str) -> None:
    assert guard(text) == text.replace("\t", "\\t").replace("\r", "\\r")


def test_export_makes_a_new_private_file_and_no_other(run: Run, ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "entries.jsonl"
    done = run("ledger", "export", ledger, "--out", out)
    assert (done.exit_code, done.output) == (0, "")
    assert len(out.read_text().splitlines()) == 6
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    for taken in (out, ledger, tmp_path / "no" / "folder"):
        before = taken.read_bytes() if taken.exists() else b""
        assert run("ledger", "export", ledger, "--out", taken).stderr.startswith("[invalid-parameter] out must be")
        assert not taken.exists() or taken.read_bytes() == before


def test_the_report_tells_who_spent_what(run: Run, ledger: Path) -> None:
    done = run("ledger", "report", ledger)
    assert done.exit_code == 0
    for text in (
        'Account "people"',
        "ε = 1, δ = 1e-6",
        "2 charges: ρ = 0.0025",
        "fixed in advance",
        "PLD",
        "no answer",
    ):
        assert text in " ".join(done.output.split())
    verdict = "Counted again by a second accountant: 2 charges (1 different), none too small."
    assert verdict in " ".join(done.output.split())
    assert "█" in done.output
    assert run("ledger", "report", ledger, "--account", "x").stderr.startswith("[unknown-account] ")


def test_the_report_of_a_halved_charge_exits_with_1(run: Run, ledger: Path, tmp_path: Path) -> None:
    def halve(drafts: list[Draft]) -> None:
        drafts[3].content["loss"] //= 2

    path = forged(ledger, tmp_path / "forged.db", halve)
    env = {"HUBBUB_STATE": str(tmp_path / "other")}
    done = run("ledger", "report", path, env=env)
    assert done.exit_code == 1
    assert "Entry 4: charged ρ = 0.000625, but its events cost ρ = 0.00125." in done.stderr
    assert "too small" in done.stderr
    verified = run("ledger", "verify", path, env=env)
    assert verified.exit_code == 1
    assert "Entry 4 is damaged: it was charged" in verified.stderr


def test_looking_writes_nothing(run: Run, ledger: Path) -> None:
    before = ledger.read_bytes()
    for command in ("verify", "show", "export", "report"):
        assert run("ledger", command, ledger).exit_code == 0
    assert run("budget", ledger).exit_code == 0
    assert ledger.read_bytes() == before


def test_help_names_every_command(run: Run) -> None:
    shown = run("--help").output + run("ledger", "--help").output + run("budget", "--help").output
    for command in (
        "budget",
        "ledger",
        "verify",
        "show",
        "export",
        "report",
        "adopt",
        "forget",
        "open",
        "project",
        "grant",
    ):
        assert command in shown
    assert run("--version").output.startswith("hubbub ")


def test_as_a_program_of_its_own_in_a_pipe(ledger: Path) -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hubbub", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )

    shown = program("budget", str(ledger))
    assert shown.returncode == 0, shown.stderr
    assert "people" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    missing = program("ledger", "verify", f"{ledger}-none")
    assert missing.returncode == 2
    assert missing.stderr.startswith("[ledger-unreachable] ")
    assert "Traceback" not in missing.stderr
