"""Killed at every point of a question's path and started again: nothing is lent, lost, paid twice or answered twice."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.ledger import Ledger, Marks
from hubbub.privacy.filter import Budget
from tests.ledger.checking import Findings, findings, lines_of
from tests.ledger.conftest import OpenLedger
from tests.ledger.crashing import OUTSIDE, POINTS, Job, script, set_up
from tests.ledger.nursery import Nursery

WHENS = {"sqlite": ("first", "middle", "random"), "postgres": ("first", "random")}
THIRDS = tuple(POINTS[start::3] for start in range(3))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def job(location: str | Path, marks: Marks, tmp_path: Path) -> dict[str, Any]:
    return {"location": str(location), "state": str(marks.folder), "log": str(tmp_path / "log")}


def check_the_end(job: Job, ledger: Ledger) -> Findings:
    """Every question that can be answered was, exactly what they cost is spent, and nothing more can be."""
    lines = lines_of(Path(job.log))
    found = findings(ledger, lines)
    assert found.problems == []
    keys = {
        question.key for prefix, _ in job.lives for questions in script(prefix, job.rounds) for question in questions
    }
    assert {line["key"] for line in lines if line["saw"] == "reply"} == {key for key in keys if key[-1] != "4"}
    assert {line["key"] for line in lines if line["saw"] == "refused"} == {key for key in keys if key[-1] == "4"}
    lives = len(job.lives) * job.rounds
    assert found.charges == 5 * lives
    for holder in (statement for statement in ledger.statements() if statement.account == "town"):
        assert holder.left.pure == 0, holder
    return found


@pytest.mark.parametrize("points", THIRDS, ids=["one", "two", "three"])
def test_killed_at_each_point_and_asked_again_every_key_has_one_charge_and_one_answer(
    points: tuple[str, ...], job: dict[str, Any], nursery: Nursery, marks: Marks, open_ledger: OpenLedger
) -> None:
    whens = WHENS["postgres" if job["location"].startswith("postgres") else "sqlite"]
    lives = tuple((point, tuple((point, when) for when in whens)) for point in points)
    order = Job(**job, lives=lives, seed=1)
    set_up(order.location, marks, lives=len(lives))
    story = nursery.killed(order)
    assert [told["problems"] for told in story if told["event"] == "checked" and told["problems"]] == []
    ends = Counter((told["event"], told["point"], told["when"]) for told in story if told["event"] != "checked")
    killed = {("killed", point, when): 1 for point in points for when in whens}
    assert ends == killed | {("lived", None, ""): len(lives)}
    check_the_end(order, open_ledger())


def test_killed_from_outside_while_several_threads_ask_nothing_is_lent_or_lost(
    job: dict[str, Any], nursery: Nursery, marks: Marks, open_ledger: OpenLedger
) -> None:
    order = Job(**job, lives=(("crowd", ((OUTSIDE, ""),) * 4),), rounds=8, threads=4, seed=2)
    set_up(order.location, marks, lives=1, rounds=order.rounds)
    story = nursery.killed(order)
    assert [told["problems"] for told in story if told["event"] == "checked" and told["problems"]] == []
    assert story[-1]["event"] == "lived"
    check_the_end(order, open_ledger())


MAKING = (
    *("before-begin", "after-begin", "after-first-insert", "before-commit", "after-commit"),
    *("before-mark", "after-mark"),
)


@pytest.mark.parametrize("point", MAKING)
def test_killed_while_it_is_made_a_ledger_can_be_made_again(
    point: str, job: dict[str, Any], nursery: Nursery, open_ledger: OpenLedger
) -> None:
    order = {"location": job["location"], "state": job["state"], "point": point, "processes": 1}
    assert list(nursery.story("creation", order)) == []
    ledger = open_ledger()
    ledger.open_account("town", Budget(epsilon=Fraction(1)))
    found = findings(ledger)
    assert found.problems == []
    assert found.entries == 2
