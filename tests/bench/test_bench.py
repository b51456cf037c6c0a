"""The benches measure what they say. How fast anything is, they alone decide; no test asserts a time."""

import json
import platform
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from bench import data, keys, quantiles
from bench.__main__ import BENCHES, figure, table_of
from bench.clock import best
from bench.record import Bench, MissingInput, Row, keep
from hubbub.mechanisms import LaplaceThreshold, WeightedGaussianThreshold


def test_misclassified_counts_points_between_answer_and_truth() -> None:
    values = np.arange(1.0, 12.0)  # the median of 1 … 11 is 6
    assert quantiles.misclassified(values, np.array([6.0])) == 0
    assert quantiles.misclassified(values, np.array([6.5])) == 0
    assert quantiles.misclassified(values, np.array([8.5])) == 2
    assert quantiles.misclassified(values, np.array([5.9])) == 1
    assert quantiles.misclassified(values, np.array([3.2, 6.0, 11.0])) == pytest.approx((0 + 0 + 3) / 3)


def test_quantiles_and_their_count_spend_one_budget() -> None:
    assert [sum(quantiles.shares(many)) for many in quantiles.MANY] == [quantiles.EPSILON] * 4
    assert [quantiles.shares(many)[0] > 0 for many in quantiles.MANY] == [False, False, True, True]
    answers = quantiles.ask(np.arange(100.0), 29, quantiles.AGES)
    assert len(answers) == 29
    assert (np.diff(answers) >= 0).all()


def test_units_are_cut_to_the_cap_by_themselves() -> None:
    units = {"a": [str(k) for k in range(50)], "b": ["x"]}
    kept = keys.cut(units, 10)
    assert [len(held) for held in kept] == [10, 1]
    assert set(kept[0]) <= set(units["a"])
    assert len({tuple(sorted(keys.cut(units, 10)[0])) for _ in range(5)}) > 1  # a fresh secret key each time


def test_every_strategy_is_given_what_it_needs() -> None:
    units = {f"unit {k}": ["everybody", f"own {k}"] for k in range(400)}
    for kind in (LaplaceThreshold, WeightedGaussianThreshold):
        strategy = kind(epsilon=Fraction(3), delta=Fraction(1, 10**9), keys_per_unit=2)
        assert keys.shown(strategy, units) == 1


def test_results_name_versions_and_no_host(tmp_path: Path) -> None:
    row = Row(what="one", figures={"ratio": 2.0}, target="≥ 1", holds=True)
    bench = Bench(name="probe", about="a test", run=lambda: iter([row]), steps=1)
    body = json.loads(keep(bench, [row], seconds=1.0, folder=tmp_path).read_text())
    assert body["rows"] == [{"what": "one", "figures": {"ratio": 2.0}, "target": "≥ 1", "holds": True, "remark": ""}]
    assert {"python", "numpy", "opendp", "hubbub"} <= set(body["versions"])
    assert platform.node() not in json.dumps(body["machine"])
    assert str(tmp_path) not in json.dumps(body)


def test_the_best_round_counts() -> None:
    calls: list[str] = []
    found = best({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b"] * 3
    assert set(found) == {"a", "b"}
    assert min(found.values()) >= 0


def test_tables_show_every_figure() -> None:
    rows = [Row(what="x", figures={"p": 1.0}), Row(what="y", figures={"q": 2.0}, target="≥ 3", holds=False)]
    table = table_of(Bench(name="probe", about="a test", run=lambda: iter(rows), steps=2), rows)
    assert [column.header for column in table.columns] == ["", "p", "q", "target", ""]
    assert table.row_count == 2
    assert (figure(0.0), figure(1234.5), figure(123.45), figure(12.345), figure(0.123456)) == (
        "0", "1,234", "123.5", "12.35", "0.123456",
    )  # fmt: skip


def test_bench_names_are_their_own() -> None:
    names = [bench.name for bench in BENCHES]
    assert len(set(names)) == len(names)


def test_a_missing_table_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(data, "SHARED", tmp_path)
    for load in (data.adult_ages, data.reddit):
        with pytest.raises(MissingInput, match=r"which is not here\.$"):
            load()
