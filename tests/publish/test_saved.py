"""What is saved comes back and answers the same; what was not saved by us does not."""

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.mechanisms import Geometric
from hubbub.publish.release import saved

CELLS = np.arange(24).reshape(6, 4)
DOMAIN = publish.Domain.of({"cost": publish.bins(0, 3, 6), "day": [date(2026, 1, 1), None, "x", 1.5]})


def released(**changes: Any) -> publish.Published:
    options: dict[str, Any] = {"strategy": publish.Flat(), "epsilon": 1, "domain": DOMAIN} | changes
    return publish.run(CELLS, **options)


def test_the_same_release(tmp_path: Path) -> None:
    made = released(contribution=publish.Contribution(cells=2, each=3, total=4), delta=1e-6)
    made.save(tmp_path / "cells.json")
    found = publish.load(tmp_path / "cells.json")
    assert np.array_equal(found.cells, made.cells)
    assert found.certificate() == made.certificate()
    assert found.domain == made.domain
    assert found.range(cost=(0.5, 2)) == made.range(cost=(0.5, 2))
    assert found.table() == made.table()


def test_steps_are_kept(tmp_path: Path) -> None:
    made = released().nonnegative().whole()
    made.save(tmp_path / "cells.json")
    found = publish.load(tmp_path / "cells.json")
    assert found.steps == made.steps
    assert np.array_equal(found.cells, made.cells)
    assert found.range(cost=(0, 3)).low is None


def test_parquet_holds_cells_and_certificate(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = released(domain=publish.Domain.of({"age": range(6), "ward": ["a", "b", None, "d"]}))
    made.save(tmp_path / "cells.parquet")
    table = parquet.read_table(tmp_path / "cells.parquet")
    assert table.column_names == ["age", "ward", "value", "deviation"]
    assert table["ward"].to_pylist()[:5] == ["a", "b", None, "d", "a"]
    assert table["value"].to_pylist() == made.cells.reshape(-1).tolist()
    assert table.schema.metadata[b"hubbub.certificate"].decode() == made.certificate()
    found = publish.load(tmp_path / "cells.parquet")
    assert np.array_equal(found.cells, made.cells)


def test_a_table() -> None:
    rows = released().table()
    assert len(rows) == 24
    assert rows[5]["cost"] == "[0.5, 1)"
    assert rows[5]["day"] is None
    assert rows[5]["deviation"] == pytest.approx(Geometric(epsilon=Fraction(1)).standard_deviation)


def test_frames() -> None:
    pytest.importorskip("pandas")
    assert released().to_pandas().shape == (24, 4)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"strategy": {"is": "Flat", "noise": "gaussian"}},
        {"strategy": {"is": "os"}},
        {"events": "0" * 64},
        {"noisy": []},
        {"entry": "1"},
        {"account": 5},
        {"terms": {}},
        {"domain": []},
        {"domain": [{"name": "a", "range": [0, 24, 0]}]},
        {"domain": [{"name": "a", "range": [0, 23, 1]}]},
        {"domain": [{"name": "a", "values": [{"path": "x"}]}]},
        {"receipt": {}},
        {"made": {"kind": "<f8"}},
    ],
)
def test_anything_else_is_refused(change: dict[str, Any]) -> None:
    told = json.loads(json.dumps(saved.to_json(released())))
    saved.from_json(told)
    with pytest.raises(ParameterError):
        saved.from_json(told | change)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"format": "hubbub.published"}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cells.json").write_text(text)
    with pytest.raises(ParameterError):
        publish.load(tmp_path / "cells.json")
    with pytest.raises(ParameterError):
        publish.load(tmp_path / "nothing.json")


def test_axes() -> None:
    axis = DOMAIN.axis("cost")
    assert (len(axis.labels), axis.labels[5], list(axis.labels[:2])) == (6, "[2.5, 3)", ["[0, 0.5)", "[0.5, 1)"])
    assert axis.between(0.5, 2) == slice(1, 4)
    assert axis.between("[0, 0.5)", "[1, 1.5)") == slice(0, 3)
    for ends in ((0.4, 2), (2, 0.5), (0.5, 9), (float("nan"), 1), ("[0, 0.5)", 1)):
        with pytest.raises(ParameterError):
            axis.between(*ends)
    with pytest.raises(IndexError):
        axis.labels[6]
    labels: list[Any] = ["text", [], [1, 1], 5]
    for wrong in labels:
        with pytest.raises(ParameterError):
            publish.Domain.of({"a": wrong})
    with pytest.raises(ParameterError):
        publish.bins(1, 1, 3)


def test_it_is_shown() -> None:
    made = released(domain=publish.Domain.of({"age": range(6), "<b>\x1b": range(4)}))
    assert "… 4 more cells" in repr(made)
    assert "\x1b" not in repr(made)
    assert "&lt;b&gt;" in made._repr_html_()
    assert "ε = 1" in repr(made)
    assert repr(made.range(age=(0, 1))).endswith("(0.95)")
