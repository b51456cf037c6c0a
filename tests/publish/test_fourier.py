"""Few cosines: sums, scores and curves against the obvious, and the claim on every pair of small neighbours."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import fft, stats

from hubbub import publish
from hubbub.errors import HubbubError, MisfitError, ParameterError
from hubbub.gate.secret import Facts
from hubbub.mechanisms.selection.select import Exponential, PermuteAndFlip
from hubbub.mechanisms.staged.resolution import STEPS, Fans, Resolution, _sum_of_squares
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, Fourier, Noise, Terms
from hubbub.publish.strategies.fourier import coefficients, curve
from hubbub.publish.strategies.strategy import Strategy
from tests.publish.brute import paid

FALSE_ALARM = 1e-6
ONE = Fraction(1)
RNG = np.random.default_rng(8)


def matrix(fans: Fans) -> np.ndarray:
    leaves = fans.widths[-1]
    return np.stack([fans.sums(row) for row in np.eye(leaves, dtype=np.int64)], axis=1)


def resolution(size: int = 32, **options: Any) -> Resolution:
    usual: dict[str, Any] = {"size": size, "choosing": ONE / 4, "epsilon": ONE / 2, "least": 1}
    return Resolution(**(usual | options))


@pytest.mark.parametrize(
    ("leaves", "bits", "children"),
    [(1, 4, (1,)), (8, 4, (8,)), (16, 4, (16,)), (32, 4, (8, 4)), (4096, 4, (16, 16, 16)), (8, 2, (4, 2))],
)
def test_trees_are_shallow_and_even(leaves: int, bits: int, children: tuple[int, ...]) -> None:
    assert Fans.over(leaves, bits=bits).children == children


@pytest.mark.parametrize("children", [(4,), (2, 3), (3, 2, 2), (4, 1, 2)])
def test_inference_is_least_squares(children: tuple[int, ...]) -> None:
    fans = Fans(children)
    dense = matrix(fans)
    assert dense.shape == (fans.size, math.prod(children))
    assert dense.sum(axis=0).tolist() == [fans.levels] * math.prod(children)
    nodes = RNG.normal(size=(3, fans.size))
    expected = np.linalg.lstsq(dense, nodes.T, rcond=None)[0].T
    assert np.allclose(fans.solve_leaves(nodes), expected)
    prefixes = np.tril(np.ones((math.prod(children),) * 2))
    variances = np.diag(prefixes @ np.linalg.inv(dense.T @ dense) @ prefixes.T)
    assert fans.spread() == pytest.approx(variances.mean())


@pytest.mark.parametrize(("cells", "blocks"), [(32, 8), (32, 32), (32, 1), (8, 2)])
def test_the_curve_has_the_sums_and_only_so_many_cosines(cells: int, blocks: int) -> None:
    sums = RNG.normal(size=blocks)
    found = curve(coefficients(sums, cells=cells), cells=cells)
    assert np.allclose(found.reshape(blocks, -1).sum(axis=1), sums)
    spectrum = fft.dct(found, norm="ortho")
    assert np.allclose(spectrum[blocks:], 0)
    assert np.allclose(spectrum[:blocks], coefficients(sums, cells=cells))


def test_sums_of_few_cosines_come_back_exactly() -> None:
    spectrum = np.zeros(64)
    spectrum[:8] = RNG.normal(size=8)
    smooth = fft.idct(spectrum, norm="ortho")
    assert np.allclose(curve(coefficients(smooth.reshape(8, -1).sum(axis=1), cells=64), cells=64), smooth)


def away(cells: np.ndarray, blocks: int) -> np.ndarray:
    """Running totals less the lines between the edges of blocks, in floats and one after the other."""
    totals = np.concatenate([[0.0], np.cumsum(cells)])
    edges = np.linspace(0, len(cells), blocks + 1)
    lines: np.ndarray = np.interp(np.arange(len(cells) + 1), edges, totals[edges.astype(int)])
    return np.asarray(totals - lines)[1:]


@pytest.mark.parametrize("size", [16, 21])
def test_scores_are_errors_of_running_totals(size: int) -> None:
    mechanism = resolution(size)
    cells = RNG.integers(0, 50, size)
    padded = np.zeros(mechanism.padding)
    padded[:size] = cells
    for place, blocks in enumerate(mechanism.blocks):
        spread = mechanism.tree(blocks).spread() * mechanism.laws[place].standard_deviation ** 2
        expected = math.sqrt(np.mean(away(padded, blocks) ** 2) / 2 + spread)
        assert mechanism.scores(cells)[place] == pytest.approx(-STEPS * expected, abs=1.01)


def test_numbers_of_any_size_are_scored_exactly() -> None:
    mechanism = resolution(8)
    cells = np.array([3, 0, 5, 1, 0, 0, 9, 2])
    wide = cells.astype(object) * 10**30
    # without noise a score is homogeneous, and beside 10^6 it is next to nothing; blocks of one cell leave noise alone
    few, many = mechanism.scores(cells * 10**6), mechanism.scores(wide)
    assert [float(one) for one in many[:-1]] == pytest.approx([float(one) * 1e24 for one in few[:-1]], rel=1e-6)
    assert many[-1] == few[-1] == -math.isqrt(mechanism.offsets[-1])
    assert mechanism.sums(wide, 4).tolist() == [int(x) * 10**30 for x in mechanism.sums(cells, 4)]
    numbers = np.array([0, -1, (1 << 40) + 7, -(1 << 61) + 1, 12345])
    assert _sum_of_squares(numbers) == sum(int(x) ** 2 for x in numbers)


@pytest.mark.parametrize("neighbors", list(Neighbors)[:2])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_unit_moves_a_score_further_than_its_reach(rows: int, neighbors: Neighbors) -> None:
    """Every cell on empty tables, and random neighbours."""
    mechanism = resolution(32, rows=rows, neighbors=neighbors)
    for _ in range(60):
        base = RNG.integers(0, RNG.choice([1, 3, 1000]) + 1, 32)
        unit = np.bincount(RNG.choice(RNG.integers(0, 32, 2), rows), minlength=32)
        other = base + unit
        if neighbors is Neighbors.REPLACE_ONE:
            base = base + np.bincount(RNG.integers(0, 32, rows), minlength=32)
        moved = np.abs(mechanism.scores(other) - mechanism.scores(base))
        assert all(step <= mechanism.score_reach(blocks) for step, blocks in zip(moved, mechanism.blocks, strict=True))


@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_the_reach_of_a_score_is_tight(blocks: int) -> None:
    """A cell at the edge of its block beside a large number there, where noise does not matter."""
    mechanism, place = resolution(16), int(math.log2(blocks))
    cells = np.zeros(16, dtype=np.int64)
    cells[0] = 10**9
    one_more = cells.copy()
    one_more[0] += 1
    moved = abs(int(mechanism.scores(one_more)[place] - mechanism.scores(cells)[place]))
    assert mechanism.score_reach(blocks) - 1 <= moved <= mechanism.score_reach(blocks)
    assert (mechanism.score_reach(blocks) == 0) is (blocks == 16)


def test_the_reach_follows_rows_and_replacement() -> None:
    square = STEPS**2 * 15 * 31 / (12 * 16 * 16)
    assert resolution(16).score_reach(1) == math.ceil(math.sqrt(square))
    assert resolution(16, rows=3).score_reach(1) == math.ceil(3 * math.sqrt(square))
    twice = resolution(16, neighbors=Neighbors.REPLACE_ONE)
    assert twice.score_reach(1) == math.ceil(2 * math.sqrt(square))
    assert twice.selection.sensitivity == twice.score_reach(1)
    assert [law.needs.sensitivity for law in twice.laws] == [2 * twice.tree(blocks).levels for blocks in twice.blocks]


def test_every_pair_of_small_neighbours_is_within_the_claim() -> None:
    mechanism = resolution(4, choosing=ONE, epsilon=ONE)
    assert mechanism.event.epsilon == 2
    tables = list(itertools.product(range(2), repeat=4))
    outputs = [(4, 1, 0, -1, 2), (2, 3, -1), (1, 4), (4, 0, 0, 0, 0), (1, -2), (2, 0, 5)]
    for table in tables:
        for place in range(4):
            more = np.array(table)
            more[place] += 1
            for output in outputs:
                loss = mechanism.log_mass(np.array(table), output) - mechanism.log_mass(more, output)
                assert abs(loss) <= 2 + 1e-9


def test_impossible_answers() -> None:
    mechanism = resolution(4)
    cells = np.array([1, 2, 3, 4])
    assert mechanism.log_mass(cells, (3, 1, 2, 3)) == -math.inf
    assert mechanism.log_mass(cells, (2, 1)) == -math.inf
    assert mechanism.log_mass(cells, (2, 3, 7)) > -math.inf
    with pytest.raises(HubbubError, match="no error"):
        mechanism.error(beta=0.1)
    with pytest.raises(ParameterError, match="row of 4"):
        mechanism.draw(np.array([1, 2, 3]))
    with pytest.raises(ParameterError, match="row of 4"):
        mechanism.draw(np.array([1.0, 2, 3, 4]))


@pytest.mark.parametrize("options", [{"epsilon": None}, {"rho": ONE}, {"choosing": 0}, {"size": 0}, {"least": 0}])
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        resolution(**({"size": 4} | options))


def test_gaussian_noise_is_paid_in_rho() -> None:
    mechanism = resolution(64, epsilon=None, rho=ONE / 50, rows=2)
    assert isinstance(mechanism.selection, Exponential)
    assert isinstance(resolution().selection, PermuteAndFlip)
    choice, measured = paid(mechanism.event.events, rho=True)
    assert choice == (ONE / 4) ** 2 / 8
    for law, blocks in zip(mechanism.laws, mechanism.blocks, strict=True):
        assert law.needs.sensitivity == 4 * mechanism.tree(blocks).levels
        (own,) = paid([law.event], rho=True)
        assert own <= measured <= ONE / 50


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("contribution", [Contribution(), Contribution(cells=3, neighbors=Neighbors.REPLACE_ONE)])
def test_the_price_is_kept(delta: float, contribution: Contribution) -> None:
    prepared = Fourier(noise=Noise.GAUSSIAN if delta else None).prepare(
        (10, 7), Terms.at(1, delta, contribution=contribution)
    )
    mechanism = prepared.mechanism
    assert mechanism.rows == contribution.total
    assert mechanism.neighbors is contribution.neighbors
    assert mechanism.size == 70
    if not delta:
        assert mechanism.event.epsilon == 1
        assert mechanism.choosing == pytest.approx(0.2)
    else:
        (rho,) = paid([mechanism.event], rho=True)
        most = rho_rounded_down(ONE, Fraction(1e-6))
        assert most * Fraction(99, 100) < rho <= most


def test_a_mechanism_for_fewer_rows_is_refused() -> None:
    (layer,) = Fourier().prepare((8,), Terms.at(1)).measurements
    wide = layer.measurement(Contribution(cells=2))
    facts = Facts(account="a", sensitivity=wide.sensitivity, neighbors=Contribution(cells=2).neighbors)
    with pytest.raises(MisfitError):
        facts.check_fit(wide.mechanism)


def test_no_error_is_public() -> None:
    release = publish.run(np.arange(16), Fourier(), epsilon=1)
    with pytest.raises(HubbubError, match="depends on the data"):
        release.prepared.variances(np.ones((1, 16)))
    answer = release.range(0, 3)
    assert answer.deviation is None
    assert "depends on the data" in str(answer.why_no_interval)


def test_little_noise_gives_the_cells_back() -> None:
    cells = RNG.integers(0, 1000, (5, 9))
    release = publish.run(cells, Fourier(), epsilon=10**5)
    assert release.cells.shape == (5, 9)
    assert np.allclose(release.cells, cells, atol=0.5)


def test_smooth_data_need_few_cosines_and_little_noise() -> None:
    """Errors of ranges are less than a third of those of noise on every cell, in squares, in most pairs of releases.

    Both laws have heavy tails, so that means of a few releases differ by chance; the number of pairs does not. The
    share of such pairs is 0.76 ± 0.02 (1,200 pairs were drawn); at a share of 0.7, a false alarm has probability 1e-9.
    """
    cells = np.rint(2000 * np.exp(-(((np.arange(1024) - 400) / 150) ** 2))).astype(np.int64)

    def square(strategy: Strategy) -> float:
        released = publish.run(cells, strategy, epsilon=0.1).cells
        return float(np.mean(np.cumsum(released - cells) ** 2))

    assert sum(square(Fourier()) < square(publish.Flat()) / 3 for _ in range(200)) >= 100


def test_a_choice_that_was_read_back_must_fit() -> None:
    prepared = Fourier(least=4).prepare((16,), Terms.at(1))
    with pytest.raises(ParameterError, match="noisy numbers"):
        prepared.estimate([np.array([3, 1, 1, 1])])
    with pytest.raises(ParameterError, match="noisy numbers"):
        prepared.estimate([np.array([4, 1, 1, 1])])
    assert prepared.estimate([np.array([4, 1, 1, 1, 1])]) == pytest.approx(np.full(16, 0.25))


def test_answers_are_unbiased_given_the_choice() -> None:
    """Block sums of 2,000 answers with one block left to choose from: false alarm 1e-6."""
    cells = np.array([5, 0, 2, 7])
    mechanism = resolution(4, least=4)
    assert mechanism.blocks == (4,)
    drawn = np.array(mechanism.repeat(cells, times=2000))
    assert (drawn[:, 0] == 4).all()
    z = stats.norm.isf(FALSE_ALARM / 8)
    assert (abs(drawn[:, 1:].mean(axis=0) - cells) < z * mechanism.laws[0].standard_deviation / math.sqrt(2000)).all()


def test_saved_and_read_again(tmp_path: Path) -> None:
    release = publish.run(np.arange(40), Fourier(least=8), epsilon=1)
    release.save(tmp_path / "r.json")
    again = publish.load(tmp_path / "r.json")
    assert np.array_equal(again.cells, release.cells)
