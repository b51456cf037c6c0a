"""A marginal that somebody looks at: as text, HTML, data frames and a picture, all with the same numbers."""

from datetime import date

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.publish import Axis, Domain, Marginal, MarginalRelease, run_table

DAYS = (date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3))
DOMAIN = Domain(axes=(Axis(name="ward<b>", labels=("a", None)), Axis(name="day", labels=DAYS)))
FRAMES = {"pandas": Marginal.to_pandas, "polars": Marginal.to_polars, "pyarrow": Marginal.to_arrow}


@pytest.fixture
def release() -> MarginalRelease:
    codes = np.array([[place % 2, place % 3] for place in range(600)])
    return run_table(codes, DOMAIN, publish.Marginals(ways=2), epsilon=1)


def test_frames_have_a_row_a_cell(release: MarginalRelease) -> None:
    made = release.marginal("ward<b>", "day")
    for package, take in FRAMES.items():
        pytest.importorskip(package, reason=f"{package} is not installed")
        frame = take(made)
        columns = {name: list(frame[name].to_pylist() if package == "pyarrow" else frame[name]) for name in (
            "ward<b>", "day", "value", "deviation"
        )}  # fmt: skip
        assert columns["value"] == made.values.reshape(-1).tolist()
        assert made.deviation is not None
        assert columns["deviation"] == made.deviation.reshape(-1).tolist()
        assert columns["ward<b>"][:3] == ["a"] * 3
        assert [str(day)[:10] for day in columns["day"]] == ["2026-01-01", "2026-01-02", "2026-01-03"] * 2
    assert made.nonnegative().to_pandas()["deviation"].isna().all(), "errors depend on the data then"


def test_text_and_html_end_with_the_terms(release: MarginalRelease) -> None:
    made = release.marginal("ward<b>")
    *rows, empty, terms = repr(made).splitlines()
    assert rows[0].split() == ["ward<b>", "value", "deviation"]
    assert [row.split()[0] for row in rows[2:]] == ["a", "None"]
    assert empty == ""
    assert terms == repr(release).splitlines()[-1]
    assert "of each unit at most 1 row; rows beyond are not in the interval · ε = 1 · entry 1" in terms
    shown = made._repr_html_()
    assert "ward&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "entry 1 of account" in shown
    assert "ward&lt;b&gt; × day, 6 cells" in release._repr_html_()


def test_a_picture_of_one_column_two_or_none(release: MarginalRelease) -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    bars = release.marginal("day").plot(title="Days")
    assert [bar.get_height() for bar in bars.patches] == release.marginal("day").values.tolist()
    assert bars.get_title() == "Days"
    assert bars._repr_png_().startswith(b"\x89PNG")
    heat = release.marginal("ward<b>", "day").plot()
    assert heat.images[0].get_array().tolist() == release.marginal("ward<b>", "day").values.tolist()
    (total,) = release.marginal().plot().patches
    assert total.get_height() == float(release.marginal().values)


def test_more_than_two_columns_have_no_picture() -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    axes = tuple(Axis(name=name, labels=(0, 1)) for name in "abc")
    wide = Marginal(axes=axes, values=np.zeros((2, 2, 2)), deviation=None)
    with pytest.raises(ParameterError, match="of one or two columns"):
        wide.plot()
