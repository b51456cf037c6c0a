"""Ten tasks of a first hour, done with the installed command and the public names alone, in an empty folder.

Each was done by hand from ``--help`` and errors first; where that stumbled, the stumble was mended and stands here.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

HUBBUB = Path(sys.executable).with_name("hubbub")
COMMAND = [str(HUBBUB)] if HUBBUB.exists() else [sys.executable, "-m", "hubbub"]
WARDS = "SELECT ward, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY ward"


class Newcomer:
    """Somebody in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HUBBUB")},
            **{"HUBBUB_STATE": str(folder / ".state"), "NO_COLOR": "1", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
        }
        random.seed(1)
        rows = [f"p{place // 3},{random.choice(['north', 'south'])},{random.randint(1, 90)}" for place in range(3000)]
        (folder / "visits.csv").write_text("patient_id,ward,cost\n" + "\n".join(rows) + "\n")

    def hubbub(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the installed command."""
        return self._run([*COMMAND, *arguments])

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run a script of a newcomer's own."""
        return self._run([sys.executable, "-c", "import hubbub as hb\n" + code])

    def tell(self, *arguments: str) -> str:
        """Run a command that must work, and return what it prints."""
        done = self.hubbub(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def change(self, old: str, new: str) -> None:
        """Edit the policy, as it says."""
        file = self.folder / "hubbub.toml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, encoding="utf-8", check=False
        )


@pytest.fixture
def me(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


@pytest.fixture
def clinic(me: Newcomer) -> Newcomer:
    """With a policy for the CSV file, whose keys are declared."""
    me.tell("init", "visits.csv", "--unit", "patient_id", "--accept")
    me.change('ward = { type = "text" }', 'ward = { type = "text", keys = ["north", "south"] }')
    return me


def test_1_a_csv_file_from_errors_alone(me: Newcomer) -> None:
    """Each error names the next step, and none of them makes anything public."""
    steps: list[tuple[tuple[str, ...], str]] = [
        (
            ("visits.csv",),
            "--unit: is needed: the column that says whose a row is. (Or write a policy, with: hubbub init)",
        ),
        (("visits.csv", "--unit", "patient_id"), "such as --budget 2"),
        (
            ("visits.csv", "--unit", "patient_id", "--budget", "1"),
            'ward = { type = "text" } in a policy and after --column',
        ),
    ]
    for arguments, said in steps:
        refused = me.hubbub("query", WARDS, *arguments, "--epsilon", "0.5")
        assert refused.returncode == 2
        assert said in " ".join(refused.stderr.replace("│", " ").split())
        assert "public" not in refused.stderr
    assert me.hubbub("init", "visits.csv", "--unit", "patient_id", "--accept").returncode == 0
    assert "let the owner declare its keys" in me.hubbub("query", WARDS, "--epsilon", "0.5").stderr
    me.change('ward = { type = "text" }', 'ward = { type = "text", keys = ["north", "south"] }')
    assert "Every promise is kept." in me.tell("check")
    shown = me.tell("query", WARDS, "--epsilon", "0.5").splitlines()
    assert [line.split()[0] for line in shown[2:4]] == ["north", "south"]
    assert "rows and values beyond are not in the interval · price in all ε = 0.5 ·" in shown[-1]
    assert shown[-1].endswith("fresh")


def test_2_a_frame(me: Newcomer) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    done = me.python(
        "import pandas\n"
        "frame = pandas.read_csv('visits.csv')\n"
        "db = hb.open(frame, unit='patient_id', budget=1, keys={'ward': ['north', 'south']})\n"
        "print(db.schema())\n"
        "print(db.sql('SELECT ward, avg(cost) AS mean FROM data GROUP BY ward', epsilon=0.5).to_pandas())\n"
        "print(db.budget)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "mean_low" in done.stdout
    assert "ε = 0.5 left of account 'people', whose budget is ε = 1" in done.stdout


def test_3_three_tables_with_paths(me: Newcomer) -> None:
    for name, rows in (
        ("customers", "SELECT i AS customer_id, i % 3 AS region FROM range(300) t(i)"),
        ("orders", "SELECT i AS order_id, i // 4 AS customer_id FROM range(1200) t(i)"),
        ("items", "SELECT i AS item_id, i % 1200 AS order_id, i % 20 AS price FROM range(4000) t(i)"),
    ):
        with duckdb.connect() as connection:
            connection.sql(rows).write_parquet(str(me.folder / f"{name}.parquet"))
    tables = ("customers.parquet", "orders.parquet", "items.parquet")
    me.tell("init", *tables, "--unit", "customer_id")
    refused = me.hubbub("check").stderr
    (remedy,) = (part for part in refused.split("add ")[1:] if part.startswith("unit = "))
    step = remedy.partition(", and unique")[0]
    me.change(f"# {step}", step)
    me.change("# order_id = { unique = true }", "order_id = { unique = true }")
    assert "Every promise is kept." in me.tell("check")
    asked = "SELECT sum(i.price) FROM items i JOIN orders o ON i.order_id = o.order_id"
    assert "price in all ε = 0.5" in me.tell("query", asked, "--epsilon", "0.5")


def test_4_a_budget_raised(clinic: Newcomer) -> None:
    if " set " not in clinic.tell("budget", "--help"):
        pytest.skip("this Hubbub cannot change a budget yet")
    clinic.tell("query", WARDS, "--epsilon", "1")
    asked = ("query", "SELECT count(DISTINCT patient_id) FROM visits", "--epsilon", "0.5")
    assert "[budget-exceeded]" in clinic.hubbub(*asked).stderr
    clinic.tell("budget", "set", "people", "--epsilon", "2")
    clinic.change("epsilon = 1 ", "epsilon = 2 ")
    assert "price in all ε = 0.5" in clinic.tell(*asked)


def test_5_two_analysts_with_grants(clinic: Newcomer) -> None:
    clinic.tell("describe")  # opens the account
    clinic.tell("budget", "grant", "people", "ann", "--epsilon", "0.3")
    clinic.tell("budget", "grant", "people", "bob", "--epsilon", "0.1")
    asked = ("query", "SELECT count(DISTINCT patient_id) FROM visits", "--epsilon", "0.2")
    assert "price in all ε = 0.2" in clinic.tell(*asked, "--principal", "ann")
    refused = clinic.hubbub(*asked, "--principal", "bob").stderr
    assert "[budget-exceeded]" in refused
    assert 'principal "bob"' in refused
    assert clinic.tell("describe", "--principal", "bob").splitlines()[-1].startswith("ε = 0.1 left to 'bob'")
    stranger = clinic.hubbub("describe", "--principal", "eve")
    assert (stranger.returncode, stranger.stdout) == (2, "")


def test_6_a_plot_in_a_notebook(clinic: Newcomer) -> None:
    """As a notebook asks for it; ``tests/report/test_notebook.py`` runs a kernel."""
    for package in ("matplotlib", "IPython"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    done = clinic.python(
        "from IPython.core.formatters import DisplayFormatter\n"
        f"with hb.open('hubbub.toml') as db:\n    axes = db.sql('{WARDS}', epsilon=0.5).plot(column='n')\n"
        "shown, _ = DisplayFormatter().format(axes)\n"
        "print(sorted(shown), shown['image/png'][:4])\n"
    )
    assert done.returncode == 0, done.stderr
    assert "image/png" in done.stdout


def test_7_a_marginal_looked_at(clinic: Newcomer) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    done = clinic.python(
        "from hubbub import publish\n"
        "with hb.open('hubbub.toml') as db:\n"
        "    over = {'ward': ['north', 'south'], 'cost > 45': [False, True]}\n"
        "    release = db.publish(publish.Marginals(ways=2), over=over, rows=3, epsilon=0.5)\n"
        "print(release)\nprint(release.marginal('ward'))\nprint(release.marginal('ward').to_pandas().shape)\n"
    )
    assert done.returncode == 0, done.stderr
    assert 'Look at one: release.marginal("ward", "cost > 45")' in done.stdout
    assert "of each unit at most 3 rows; rows beyond are not in the interval" in done.stdout
    assert "(2, 3)" in done.stdout


def test_8_a_useless_fit_is_noticed(me: Newcomer) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    done = me.python(
        "import numpy as np\nfrom hubbub.learn import LogisticRegression, LinearRegression\n"
        "x = np.linspace(-1, 1, 20)[:, None]\n"
        "LinearRegression(bounds=(-1, 1), y_bounds=(-1, 1), epsilon=0.001, n_jobs=2).fit(x, x[:, 0])\n"
        "LogisticRegression(max_iter=100)\n"
    )
    assert "LinearRegression ignores n_jobs: it changes nothing here." in done.stderr
    assert "This LinearRegression may be no better than chance: Expected excess error" in done.stderr
    assert "TypeError: LogisticRegression has no parameter max_iter: the number of rounds is public" in done.stderr


def test_9_what_is_left(clinic: Newcomer) -> None:
    clinic.tell("query", WARDS, "--epsilon", "0.25")
    assert clinic.tell("describe").splitlines()[-1].startswith("ε = 0.75 left of account 'people'")
    assert "0.75" in clinic.tell("budget")
    assert "The ledger is whole" in clinic.tell("ledger", "verify")


def test_10_what_was_paid_after_ctrl_c(me: Newcomer) -> None:
    with duckdb.connect() as connection:
        connection.sql("SELECT i // 400 AS id, (i * 7919) % 1000 AS cost FROM range(80000) t(i)").write_parquet(
            str(me.folder / "big.parquet")
        )
    me.tell("init", "big.parquet", "--unit", "id")
    me.change("# max_rows = 10 ", "max_rows = 10 ")
    asked = ("query", "SELECT count(*) FROM big a JOIN big b ON a.id = b.id WHERE a.cost * b.cost % 7 = 3")
    process = subprocess.Popen(
        [*COMMAND, *asked, "--epsilon", "0.25"], cwd=me.folder, env=me.environment, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, encoding="utf-8",
    )  # fmt: skip
    while process.poll() is None and "charge" not in me.hubbub("ledger", "show").stdout:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "Broken off. Paid from account 'people': ε = 0.25 (entry 3)." in said
    assert "Traceback" not in said
    assert "price in all ε = 0.25 · entry 3" in me.tell(*asked, "--epsilon", "0.25")
    assert "0.75" in me.tell("budget"), "paid once"
