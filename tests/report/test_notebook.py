"""What a notebook shows: a real kernel runs cells, and what it displays is looked at."""

import base64
import struct
import sys
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')

OPEN = """\
import duckdb
import hubbub as hb
from hubbub import publish
from hubbub.ledger import Marks
duckdb.sql("COPY (SELECT i AS id, i % 3 AS ward, i % 5 AS age FROM range(3000) t(i)) TO 'stays.parquet'")
db = hb.open("stays.parquet", unit="id", budget=50, keys={"ward": range(3)}, limits=hb.Limits(max_groups=1, max_rows=1),
             ledger="a.ledger", marks=Marks("state"))
"""
CELLS = (
    OPEN,
    'db.sql("SELECT ward, count(*) AS n FROM stays GROUP BY ward", epsilon=1)',
    'db.sql("SELECT ward, count(*) AS n FROM stays GROUP BY ward", epsilon=1).plot()',
    'over = {"ward": range(3), "age": range(5)}\n'
    "release = db.publish(publish.Marginals(ways=2), over=over, rows=1, epsilon=1)\nrelease",
    'release.marginal("ward")',
    'release.marginal("ward").plot()',
    'release.marginal("ward", "age").plot()',
    'db.publish(publish.Flat(), over={"age": range(5)}, epsilon=1).plot()',
    'db.explain("SELECT count(*) FROM stays", epsilon=1)',
    "import matplotlib.pyplot as plt\n_, ax = plt.subplots()\nrelease.marginal('ward').plot(ax=ax);",
)
PICTURES = (2, 5, 6, 7, 9)


@pytest.fixture(scope="module")
def displayed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each cell displayed, by MIME type."""
    folder = tmp_path_factory.mktemp("notebook")
    spec = folder / "kernels" / "here"
    spec.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (spec / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "here", "language": "python"}}')
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("JUPYTER_PATH", str(folder))
        changed.setenv("JUPYTER_PLATFORM_DIRS", "1")
        changed.setenv("IPYTHONDIR", str(folder / "ipython"))
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
        made = nbclient.NotebookClient(
            book, timeout=300, kernel_name="here", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return [
        {kind: shown for output in cell.outputs for kind, shown in output.get("data", {}).items()}
        for cell in made.cells
    ]


@pytest.mark.parametrize("place", PICTURES)
def test_a_plot_is_shown_as_a_picture(displayed: list[dict[str, Any]], place: int) -> None:
    picture = base64.b64decode(displayed[place]["image/png"])
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 300
    assert height > 200


def test_answers_and_marginals_are_tables_with_their_terms(displayed: list[dict[str, Any]]) -> None:
    for place in (1, 4):
        shown = displayed[place]["text/html"]
        assert shown.startswith("<table>")
        assert "ward" in shown
        assert "account &#x27;people&#x27;" in shown
    assert "ward × age, 15 cells" in displayed[3]["text/html"]
    assert "release.marginal(" in displayed[3]["text/html"]
    assert "price" in displayed[8]["text/html"]
