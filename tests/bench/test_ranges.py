"""The figure of range queries: closed forms are the exact errors, and what is drawn is what was computed."""

import numpy as np
import pytest

from bench import ranges
from hubbub import publish
from hubbub.report.pictures import plot_ranges

LAPLACE = publish.Noise.LAPLACE


@pytest.mark.parametrize("cells", [16, 64, 256])
def test_closed_forms_are_exact(cells: int) -> None:
    workload = publish.Ranges(length=cells)
    for strategy, found in (
        (publish.Flat(noise=LAPLACE), ranges.flat(cells)),
        (publish.Hierarchy(noise=LAPLACE, branching=2, even=True), ranges.tree(cells, branching=2, even=True)),
        (publish.Hierarchy(noise=LAPLACE, branching=8), ranges.tree(cells, branching=8)),
        (publish.Wavelet(noise=LAPLACE), ranges.wavelet(cells)),
        (publish.Wavelet(noise=LAPLACE, even=True), ranges.wavelet(cells, even=True)),
    ):
        exact = strategy.error(workload, ranges.EPSILON)
        assert found == pytest.approx(exact.variance / exact.queries, rel=1e-9)


def test_the_best_hierarchy_is_near_what_is_chosen() -> None:
    chosen = publish.Hierarchy(noise=LAPLACE).error(publish.Ranges(length=256), ranges.EPSILON)
    # the choice has other widths too, so it may be better by a little
    assert 1 <= ranges.hierarchy(256) / (chosen.variance / chosen.queries) < 1.05


def test_growth_is_linear_without_levels_and_a_cubed_logarithm_with_them() -> None:
    few, many = 2**14, 2**20
    assert ranges.flat(many) / ranges.flat(few) == pytest.approx(many / few, rel=1e-3)
    cubed = (20 / 14) ** 3
    for even in (ranges.wavelet(many, even=True) / ranges.wavelet(few, even=True),
                 ranges.tree(many, branching=2, even=True) / ranges.tree(few, branching=2, even=True)):  # fmt: skip
        assert 0.9 * cubed < even < 1.1 * cubed


def test_what_is_drawn() -> None:
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib, which is not installed")
    lines = ranges.series((16, 32, 64))
    axes = plot_ranges(lines, even=ranges.EVEN)
    drawn = {line.get_label(): line for line in axes.get_lines()}
    for name, line in lines.items():
        assert np.allclose(drawn[name].get_xydata(), line)
        assert drawn[name].get_linestyle() == ("--" if name in ranges.EVEN else "-")
    laws = [line for label, line in drawn.items() if label.startswith("_")]
    assert len(axes.get_lines()) == len(lines) + 2
    assert laws
    for text, power in (("O(n)", None), ("O(log³ n)", 3)):
        assert text in {one.get_text() for one in axes.texts}
        grown = [line.get_xdata() if power is None else np.log(line.get_xdata()) ** power for line in laws]
        ratios = [line.get_ydata() / one for line, one in zip(laws, grown, strict=True)]
        assert any(np.allclose(ratio, ratio[0]) for ratio in ratios)
