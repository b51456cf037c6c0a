"""Pictures of answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import HubbubError, MissingExtra, ParameterError
from hubbub.query.answer.answer import Answer, answer
from hubbub.query.plan.plan import plan
from tests.query.asking import POLICY, read
from tests.query.further import exact_tallies


def answered(sql: str, noisy: Sequence[Sequence[int]]) -> Answer:
    planned = plan(read(sql), POLICY, epsilon=1)
    return answer(planned, exact_tallies(planned, list(zip(*noisy, strict=True))), entry=3)


WARDS = "SELECT ward, count(DISTINCT patient_id) AS n, count(DISTINCT patient_id) / 2 AS half FROM stays GROUP BY ward"


def ticks(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_a_bar_and_an_error_bar_for_each_group() -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    made = answered(WARDS, [[10, 20, 5]])
    axes = made.plot(title="People $x$")
    assert [bar.get_height() for bar in axes.patches] == [10, 20, 5]
    assert ticks(axes) == ["a", "b", "c"]
    (bars,) = [one for one in axes.collections if hasattr(one, "get_segments")]
    ends = [sorted(point[1] for point in segment) for segment in bars.get_segments()]
    assert ends == [[low[1], high[1]] for low, high in zip(made.lows, made.highs, strict=True)]
    assert axes.get_title() == r"People \$x\$"
    assert any("95% intervals" in text.get_text() for text in axes.texts)


def test_another_column_which_has_no_interval() -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    axes = answered(WARDS, [[10, 20, 5]]).plot(column="half")
    assert [bar.get_height() for bar in axes.patches] == [5, 10, 2.5]
    assert any("no error bars" in text.get_text() for text in axes.texts)


def test_missing_numbers_leave_a_gap() -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    made = answered("SELECT ward, avg(age) AS mean FROM stays GROUP BY ward", [[0, 0, 0], [900, -3, 900]])
    assert [row[1] is None for row in made.rows] in ([False, True, False], [True, True, True])
    axes = made.plot()
    gaps = [bool(np.isnan(bar.get_height())) for bar in axes.patches]
    assert gaps == [row[1] is None for row in made.rows]


def test_without_keys_and_with_axes_of_ones_own() -> None:
    figure = pytest.importorskip("matplotlib.figure", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    axes = figure.Figure().add_subplot()
    assert answered("SELECT count(*) AS n FROM stays", [[7]]).plot(ax=axes) is axes
    assert len(axes.patches) == 1
    assert ticks(axes) == []


def test_a_column_that_is_no_noisy_number_is_refused() -> None:
    for column in ("ward", "none"):
        with pytest.raises(ParameterError, match="a noisy number of the answer: n, half"):
            answered(WARDS, [[1, 2, 3]]).plot(column=column)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r'pip install "hubbub\[plot\]"'):
        answered(WARDS, [[1, 2, 3]]).plot()


def test_without_a_registered_plotter_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hb.report.plot_answer is Answer.plotter
    monkeypatch.setattr(Answer, "plotter", None)
    with pytest.raises(HubbubError, match=r"Import hubbub\.report"):
        answered(WARDS, [[1, 2, 3]]).plot()
