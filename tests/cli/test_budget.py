"""``hubbub budget``: what a person sees, and what an owner can do."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.ledger import Ledger, Marks, Renewal
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from tests.cli.conftest import Run, asked


def opened(path: Path) -> Ledger:
    return Ledger(path, marks=Marks(path.parent / "state"), create=False, writes=False)


def test_open_takes_epsilon_and_delta_exactly(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    done = run("budget", "open", path, "people", "--epsilon", "0.1", "--delta", "1/3000000")
    assert (done.exit_code, done.output) == (0, 'Account "people" has ε = 0.1, δ = 3.33333e-7 (add-remove).\n')
    with opened(path) as ledger:
        (only,) = ledger.statements()
    assert only.budget == Budget(epsilon=Fraction(1, 10), delta=Fraction(1, 3_000_000))


def test_open_with_every_option(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    done = run(
        *("budget", "open", path, "staff", "--epsilon", "2", "--replace-one", "--renew-days", "30"),
        *("--population", "everyone here"),
    )
    assert done.output == 'Account "staff" has ε = 2 (replace-one), anew every 30 days.\n'
    with opened(path) as ledger:
        (only,) = ledger.statements()
        assert (only.renewal, only.budget.neighbors) == (Renewal(days=30), Neighbors.REPLACE_ONE)
        assert list(ledger.entries())[1].content["population"] == "everyone here"


@pytest.mark.parametrize("words", [("show",), ()])
def test_budget_shows_where_everyone_stands(run: Run, ledger: Path, words: tuple[str, ...]) -> None:
    run("budget", "project", ledger, "people", "study", "--epsilon", "1/2")
    run("budget", "grant", ledger, "people", "bob", "--project", "study", "--expires", "2100-01-31T12:00+02:00")
    done = run("budget", *words, ledger)
    assert done.exit_code == 0
    for text in ("people", "ε = 1", "δ = 1e-6", "add-remove", "study", "ann", "bob", "2100-01-31 10:00 UTC", "no end"):
        assert text in done.output
    assert "█" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "\x1b" not in done.output


def test_the_share_shown_is_that_of_the_balance(run: Run, ledger: Path) -> None:
    with opened(ledger) as looked:
        statement = looked.statement("people")
    share = 100 * statement.spent.loss / statement.budget.filter.loss_cap
    assert f"{share:.1f} %" in run("budget", ledger).output


def test_budget_as_json_is_exact(run: Run, ledger: Path) -> None:
    told = json.loads(run("budget", ledger, "--json").output)
    account = next(one for one in told["holders"] if one["kind"] == "account")
    assert (account["epsilon"], account["delta"], account["counted_in"], account["charges"]) == (
        *("1/1", "1/1000000", "rho", 2),
    )
    with opened(ledger) as looked:
        statement = looked.statement("people")
    assert Fraction(account["spent"]) == Fraction(statement.spent.loss, 1 << 40)
    assert Fraction(account["left"]) == Fraction(statement.left.loss, 1 << 40)
    assert [grant["principal"] for grant in told["grants"]] == ["ann"]


def test_the_ledger_may_come_from_the_environment(run: Run, ledger: Path) -> None:
    env = {"HUBBUB_LEDGER": str(ledger)}
    assert run("budget", env=env).output == run("budget", ledger).output
    done = run("budget", "grant", "people", "bob", "--epsilon", "0.5", env=env)
    assert done.output.startswith('"bob" may spend up to ε = 0.5, δ = 1e-6 (add-remove) from account "people", without')
    assert "may spend nothing more" in run("budget", "revoke", "people", "bob", env=env).output


def test_without_any_ledger_it_says_what_to_do(run: Run) -> None:
    done = run("budget")
    assert done.exit_code == 2
    assert "HUBBUB_LEDGER" in done.output


def test_a_password_given_by_mistake_is_not_repeated(run: Run) -> None:
    done = run("budget", "show", "postgresql://me:secret@host/db", "postgresql://me:secret@host/db")
    assert done.exit_code == 2
    assert "secret" not in done.output


def test_a_grant_ends_after_its_days(run: Run, ledger: Path) -> None:
    assert run("budget", "grant", ledger, "people", "bob", "--days", "2").exit_code == 0
    with opened(ledger) as looked:
        grant = next(one for one in looked.grants() if one.principal == "bob")
        made = list(looked.entries())[-1].moment
    assert grant.expires is not None
    assert 0 <= (made - grant.expires).total_seconds() + 2 * 86400 < 60


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("grant", "people", "bob", "--days", "2", "--expires", "2100-01-01"), "give one"),
        (("grant", "people", "bob", "--expires", "soon"), "not a moment"),
        (("grant", "people", "bob", "--delta", "1e-9"), "needs an"),
        (("grant", "people", "bob", "--renew-days", "3"), "needs an"),
        (("open", "other", "--epsilon", "one"), "not a number"),
        (("open", "other", "--epsilon", "1/0"), "divides by zero"),
        (("open", "other", "--epsilon", "-1"), ""),
        (("open", "other", "--epsilon", "1e9999"), "not a number"),
        (("open", "other", "--epsilon", "0"), "[invalid-parameter]"),
        (("open", "people", "--epsilon", "3"), "[invalid-parameter]"),
        (("project", "nobody", "study", "--epsilon", "1"), "[unknown-account]"),
        (("project", "people", "study", "--epsilon", "1", "--delta", "0"), "[invalid-parameter]"),
        (("grant", "people", "owner"), "[invalid-parameter]"),
        (("grant", "people", "bob", "--project", "none"), "[invalid-parameter]"),
        (("revoke", "people", "bob"), "[no-grant]"),
        (("thaw", "people", "bob"), "[no-grant]"),
        (("thaw", "nobody", "ann"), "[unknown-account]"),
    ],
)
def test_what_cannot_be_done_is_said_and_writes_nothing(
    run: Run, ledger: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    with opened(ledger) as looked:
        before = len(list(looked.entries()))
    command, *rest = arguments
    done = run("budget", command, ledger, *rest)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.replace("│", " ").split())
    with opened(ledger) as looked:
        assert len(list(looked.entries())) == before


def test_only_open_creates_a_ledger(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    for arguments in (("show",), ("project", "p", "--epsilon", "1"), ("grant", "p"), ("revoke", "p"), ("thaw", "p")):
        command, *rest = arguments
        done = run("budget", command, path, *(("people",) if rest else ()), *rest)
        assert done.exit_code == 2
        assert done.stderr.startswith("[ledger-unreachable] There is no ledger at ")
        assert done.stderr.count("\n") == 1
    assert not path.exists()


def failing(path: Path, times: int, **changes: str) -> None:
    with Ledger(path, marks=Marks(path.parent / "state")) as ledger:
        ticket = ledger.reserve(asked("how old", **changes))
        for _ in range(times):
            ledger.fail(ticket)


def test_failures_are_shown_and_thawed(run: Run, ledger: Path) -> None:
    assert "Engine failures" not in run("budget", ledger).output
    assert json.loads(run("budget", ledger, "--json").output)["failures"] == []
    failing(ledger, 1)
    shown = run("budget", ledger).output
    assert "Engine failures after a charge" in shown
    assert "1 of 3" in shown
    assert "frozen:" not in shown
    failing(ledger, 2)
    failing(ledger, 4, principal="owner")
    shown = run("budget", ledger).output
    assert "3 of 3" in shown
    assert "4 of 3" not in shown
    assert shown.count("frozen: look, then hubbub budget thaw") == 1
    assert max(map(len, shown.splitlines())) <= 80
    assert json.loads(run("budget", ledger, "--json").output)["failures"] == [
        {"account": "people", "principal": "ann", "failures": 3, "frozen": True},
        {"account": "people", "principal": "owner", "failures": 4, "frozen": False},
    ]
    done = run("budget", "thaw", ledger, "people", "ann")
    assert (done.exit_code, done.output) == (
        *(0, '"ann" had 3 failures on account "people", and is allowed 3 again.\n'),
    )
    assert "ann on people" in run("ledger", "show", ledger, "--last", 1).output
    done = run("budget", "thaw", ledger, "people", "ann")
    assert (done.exit_code, done.output) == (*(0, '"ann" has no failures on account "people": nothing was written.\n'),)
    assert [one["principal"] for one in json.loads(run("budget", ledger, "--json").output)["failures"]] == ["owner"]
    failing(ledger, 1)
    assert run("budget", "thaw", ledger, "people", "ann").output.startswith('"ann" had 1 failure on')
    assert run("ledger", "verify", ledger).exit_code == 0


def test_an_empty_ledger_says_how_to_begin(run: Run, tmp_path: Path) -> None:
    with Ledger(tmp_path / "empty.db", marks=Marks(tmp_path / "state")):
        pass
    assert "hubbub budget open" in run("budget", tmp_path / "empty.db").output


def test_names_cannot_draw(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    name = "[red]people[/red] \u202e\u200b" + "x" * 150
    assert run("budget", "open", path, name, "--epsilon", "1").exit_code == 0
    shown = run("budget", path)
    assert shown.exit_code == 0
    folded = "".join(line.split("  ")[0].strip() for line in shown.output.splitlines())
    assert "[red]" in folded
    assert "\\u202e" in folded.replace(" ", "")
    assert "\u202e" not in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


def test_a_budget_is_raised_lowered_closed_and_opened_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    run("budget", "open", path, "people", "--epsilon", "4", "--delta", "1e-9")
    done = run("budget", "set", path, "people", "--epsilon", "6")
    assert done.exit_code == 0
    assert "had ε = 4, δ = 1e-9 (add-remove)" in done.output
    assert "It has ε = 6, δ = 1e-9 (add-remove) now" in done.output
    assert "of which ε = 6 (ρ = " in done.output
    assert "greatest budget that was ever in force" in done.output
    closed = run("budget", "set", path, "people", "--close")
    assert "It is closed" in closed.output
    assert "closed" in run("budget", path).output
    with opened(path) as ledger:
        assert ledger.statement("people").closed
    run("budget", "set", path, "people", "--epsilon", "1")
    with opened(path) as ledger:
        (only,) = ledger.statements()
        assert (only.closed, only.budget.epsilon, only.budget.delta) == (False, Fraction(1), Fraction(1, 10**9))
        assert [entry.kind for entry in ledger.entries()] == ["ledger", "account", "budget", "budget", "budget"]
    shown = run("ledger", "show", path).output
    assert "account on people: closed" in shown


def test_a_limit_below_an_account_is_set(run: Run, ledger: Path) -> None:
    run("budget", "project", ledger, "people", "study", "--epsilon", "1/2")
    done = run("budget", "set", ledger, "people", "--project", "study", "--epsilon", "1/4")
    assert 'Project "study" of account "people"' in done.output
    assert "greatest" not in done.output
    with opened(ledger) as looked:
        assert looked.statement("people", "project", "study").budget.epsilon == Fraction(1, 4)
    assert run("budget", "set", ledger, "people", "--project", "none", "--close").exit_code != 0


def test_history_says_who_spent_what_on_what(run: Run, ledger: Path, tmp_path: Path) -> None:
    with opened(ledger) as looked:
        lines = [entry.content for entry in looked.entries() if entry.kind == "charge"]
    done = run("budget", "history", ledger, "--picture", tmp_path / "spent.png")
    assert done.exit_code == 0
    for line in lines:
        assert line["principal"] in done.output
        assert line["question"][:8] in done.output
    assert "█" in done.output
    assert (tmp_path / "spent.png").read_bytes()[:4] == b"\x89PNG"
    assert run("budget", "history", ledger, "--account", "nobody").exit_code != 0


def test_what_is_left_is_the_largest_epsilon_to_ask_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    run("budget", "open", path, "people", "--epsilon", "4", "--delta", "1e-9")
    (told,) = json.loads(run("budget", path, "--json").output)["holders"]
    assert (told["largest_epsilon"], told["left_pure"], told["spent_pure"]) == ("4/1", "4/1", "0/1")
    with Ledger(path, marks=Marks(tmp_path / "state")) as ledger:
        ledger.reserve(asked("noise", principal="owner"))
    (told,) = json.loads(run("budget", path, "--json").output)["holders"]
    assert (told["left_pure"], told["spent_pure"]) == (None, None)
    assert Fraction(1) < Fraction(told["largest_epsilon"]) <= 4
