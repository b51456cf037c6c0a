"""The machinery that asks the peers: what it keeps, when it gives up, and what it says when a peer is not there."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench import compare, large, queries, speeds
from bench.memory import Peak, tree
from bench.peers import ask as asking
from bench.peers import venvs
from bench.peers.program import Task, serve

TASK = Task(
    path="-", rows=3, groups=3, max_groups=1, max_rows=1, low=0.0, high=100.0, delta=1e-9,
    questions=("count", "mean", "median"), runs=3, seconds=60.0,
)  # fmt: skip
PEER = venvs.Peer(name="Probe", module="probe", requirements=("probe==1.2",), package="probe")
PROBE = """
import time
from bench.peers.program import serve

def count(task):
    return lambda: [7.0]

def mean(task):
    raise ValueError("no\\n  means here")

def median(task):
    return lambda: [time.sleep(60)]

serve({"count": count, "mean": mean, "median": median})
"""


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> venvs.Peer:
    """A peer that answers, fails and hangs, run by this Python."""
    package = tmp_path / "bench" / "peers"
    package.mkdir(parents=True)
    shutil.copy(Path(asking.__file__).with_name("program.py"), package)
    (package / "probe.py").write_text(PROBE)
    monkeypatch.setattr(asking, "ROOT", tmp_path)
    monkeypatch.setattr(asking, "python_of", lambda peer: Path(sys.executable))
    return PEER


def test_what_was_found_before_the_time_ran_out_is_kept(probe: venvs.Peer) -> None:
    found = asking.ask(probe, replace(TASK, questions=("count", "sum", "mean", "median")), limit=5.0)
    assert found["count"].answers == ((7.0,),) * 3
    assert len(found["count"].seconds) == 3
    assert not found["count"].late
    assert found["mean"].error == "ValueError: no means here"
    assert found["median"].late
    assert found["median"].answers == ()
    assert found["count"].gigabytes > 0.001


def test_a_question_that_a_peer_does_not_have_is_not_an_error(probe: venvs.Peer) -> None:
    assert set(asking.ask(probe, replace(TASK, questions=("count", "sum")), limit=60.0)) == {"count"}


def test_a_program_that_does_not_start_says_why(probe: venvs.Peer, tmp_path: Path) -> None:
    (tmp_path / "bench" / "peers" / "probe.py").write_text("import nothing_of_this_name")
    found = asking.ask(probe, TASK, limit=60.0)
    assert {"nothing_of_this_name" in (one.error or "") for one in found.values()} == {True}
    assert set(found) == set(TASK.questions)


def test_the_slow_are_not_asked_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "found"
    task = replace(TASK, seconds=0.0, fewest=2)
    monkeypatch.setattr(sys, "argv", ["probe", json.dumps(asdict(task)), str(out)])
    serve({"count": lambda task: lambda: [1.0], "mean": lambda task: lambda: [1.0]})
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["question"] for line in lines if "answer" in line] == ["count"]
    assert "Not asked" in lines[-1]["error"]
    assert lines[-1]["question"] == "mean"


def test_groups_left_out_are_empty() -> None:
    assert TASK.ordered({2: 5, 0: 1}) == [1.0, 0.0, 5.0]
    assert (TASK.epsilon("count"), TASK.epsilon("mean")) == (0.1, 1.0)


def test_a_missing_tool_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(venvs, "VENVS", tmp_path)
    with pytest.raises(venvs.NotInstalled, match="Needs no-such-tool"):
        venvs.python_of(replace(PEER, tool="no-such-tool"))
    with pytest.raises(venvs.NotInstalled, match="Does not install: last line"):
        venvs._ran([sys.executable, "-c", "import sys; sys.exit('first\\nlast line\\nWARNING: x')"], "Does not install")


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []
    monkeypatch.setattr(venvs, "VENVS", tmp_path)
    monkeypatch.setattr(venvs, "_ran", lambda command, failure: ran.append(failure))
    assert venvs.python_of(PEER) == tmp_path / "probe" / "bin" / "python"
    venvs.python_of(PEER)
    assert ran == ["No environment can be made", "Does not install", "Does not import"]
    venvs.python_of(replace(PEER, requirements=("probe==1.3",)))
    assert len(ran) == 6
    assert PEER.label == "Probe 1.2"


def test_peers_have_programs_and_pinned_releases() -> None:
    for peer in venvs.PEERS:
        assert (Path(venvs.__file__).parent / f"{peer.module}.py").exists()
        assert peer.label.split()[-1][0].isdigit()


def test_ties_are_within_the_doubt_of_both_sides() -> None:
    rng = np.random.default_rng(3)

    def side(scale: float, runs: int = 400) -> compare.Side:
        return compare.Side(answers=5 + scale * rng.normal(size=(runs, 1)), truth=np.array([5.0]))

    assert compare._not_worse(side(1.0), side(1.0))
    assert compare._not_worse(side(1.0), side(2.0))
    assert not compare._not_worse(side(2.0), side(1.0))


def test_a_peer_with_few_runs_has_no_figure() -> None:
    found = asking.Found(answers=((1.0,),) * (compare.FEWEST - 1))
    side, row = compare._peer(PEER, "count", found, np.array([1.0]), lambda side: {})
    assert side is None
    assert row.figures == {"runs": compare.FEWEST - 1}
    side, row = compare._peer(
        PEER, "count", replace(found, answers=((1.0,),) * compare.FEWEST), np.array([1.0]), lambda side: {}
    )
    assert side is not None
    assert row.figures["root mean square error"] == 0


def test_who_takes_too_long_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(queries, "plain_seconds", lambda path: 0.5)
    for found, figures, again in (
        (None, set(), False),
        (asking.Found(late=True), {"DuckDB alone", "memory, GB"}, False),
        (asking.Found(seconds=(60.0, 50.0), answers=((9.0,),) * 2), {"ratio", "groups"}, False),
        (asking.Found(seconds=(2.0, 3.0), answers=((9.0,),) * 2), {"ratio", "groups"}, True),
    ):
        monkeypatch.setattr(speeds, "ask", lambda *a, found=found, **k: {} if found is None else {"speed": found})
        row, more = speeds._asked(PEER, tmp_path, 10, "few rows")
        assert figures <= set(row.figures)
        assert more is again
    assert row.figures["ratio"] == 4.0


def test_the_large_file_has_its_laws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "ROWS", 200_000)
    monkeypatch.setattr(large, "USERS", 20_000)
    path = large.build(tmp_path)
    found = duckdb.connect().execute(
        "SELECT min(user_id), max(user_id) < 20000, min(grp), max(grp), count(DISTINCT (user_id, grp)), "
        f"count(*) FILTER (grp = 0), avg(value), max(value) FROM '{path}'"
    ).fetchone()  # fmt: skip
    assert found is not None
    assert found[:4] == (0, True, 0, 999)
    assert found[4] > 180_000  # users and groups are independent of each other
    weights = np.arange(1, 1001) ** -0.8
    assert found[5] == pytest.approx(200_000 * weights[0] / weights.sum(), rel=0.1)
    assert found[6] == pytest.approx(26.8, rel=0.03)
    assert found[7] == 100.0


def test_memory_of_children_counts() -> None:
    grown = "import sys; held = bytearray(200_000_000); print(len(held), flush=True); sys.stdin.read()"
    with Peak() as peak:
        child = subprocess.Popen([sys.executable, "-c", grown], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in tree(os.getpid())
        child.communicate()
    assert peak.gigabytes > 0.2
    assert child.pid not in tree(os.getpid())
