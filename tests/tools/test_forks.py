"""The campaign of forks: it asks, it kills, and it fails when it should."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tools import forks
from tools.forks import Tally, main


def test_a_short_campaign_with_many_kills_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_OFTEN", 10)
    monkeypatch.setattr(forks, "_STOPPED", 0.05)
    assert main(["--forks", "80", "--seed", "5", "--memory", "0.02"]) == 0


def test_a_wrong_answer_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = forks.Campaign._question

    def mistaken(campaign: forks.Campaign, chance: object) -> object:
        request, wanted = honest(campaign, chance)  # type: ignore[arg-type]
        return request, [[*wanted[0][:-1], -1]]

    monkeypatch.setattr(forks.Campaign, "_question", mistaken)
    tally = forks.torture(tmp_path, forks=8, seed=1, hog=0, console=Console(file=io.StringIO()))
    assert tally.right == 0
    assert tally.failed
    assert "instead of" in tally.wrong[0]


@pytest.mark.parametrize(
    "tally",
    [
        Tally(hung=1),
        Tally(left=["process 7"]),
        Tally(unanswered=1),
    ],
)
def test_what_is_wrong_is_the_exit_status(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "torture", lambda *_, **__: tally)
    assert main(["--seed", "1"]) == 1


def test_a_kill_excuses_one_answer() -> None:
    tally = Tally(unanswered=1)
    tally.kills["a fork"] += 1
    assert not tally.failed
    tally.unanswered += 1
    assert tally.failed
