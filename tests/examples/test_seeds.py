"""The lectures' figures against the laws behind them; statistical checks raise a false alarm once in a million at most.

Averages of n draws are held to five of their exact standard deviations: beyond that a normal law has 6e-7, and the skew
of these sums adds less than half as much again.
"""

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from examples import village
from examples.pictures import ROOT
from examples.seeds import counties, figure5, traffic
from hubbub import Facts, Meter, Neighbors, Secret, Sensitivity
from hubbub.errors import MisfitError
from hubbub.mechanisms import Geometric, RandomizedResponse
from hubbub.privacy.filter import Budget

DEVIATIONS = 5
SIDE = 5e-7


def harmonic(n: int) -> float:
    return math.fsum(1 / k for k in range(1, n + 1))


@pytest.fixture(scope="module")
def roads() -> tuple[np.ndarray, np.ndarray]:
    return traffic.road_map()


def test_the_map_has_the_slides_number_of_cells(roads: tuple[np.ndarray, np.ndarray]) -> None:
    counts, cells = roads
    assert len(counts) == len(cells) == len(np.unique(cells)) == 64_909
    assert counts.min() >= 0
    assert cells.max() < traffic.SIDE**2


@pytest.mark.parametrize("epsilon", traffic.EPSILONS)
def test_traffic_errors_follow_the_law(epsilon: Fraction, roads: tuple[np.ndarray, np.ndarray]) -> None:
    counts, _ = roads
    found = traffic.release(traffic.new_meter(), epsilon, counts)
    assert found.law_average == pytest.approx(1 / math.sinh(float(epsilon)), rel=1e-9)
    assert abs(found.average - found.law_average) < DEVIATIONS * found.average_deviation
    law = Geometric(epsilon=epsilon)
    assert found.largest <= law.error(beta=SIDE, dimension=traffic.CELLS)
    assert found.largest >= law.error(beta=1 - SIDE, dimension=traffic.CELLS)
    assert found.average == pytest.approx(float(np.abs(found.noisy - counts).mean()))


def test_the_deviation_of_the_average_is_that_of_the_law() -> None:
    found = traffic.release(traffic.new_meter(), Fraction(1), np.zeros(1000, dtype=np.int64))
    q = math.exp(-1)
    mean = sum(2 * k * (1 - q) / (1 + q) * q**k for k in range(1, 200))
    square = sum(2 * k * k * (1 - q) / (1 + q) * q**k for k in range(1, 200))
    assert found.average_deviation == pytest.approx(math.sqrt((square - mean**2) / 1000), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "average", "largest"), [(1, 0.851, 11.5), (0.01, 100.0, 1166), (0.001, 1000.0, 11658)]
)
def test_the_law_is_the_one_stated(epsilon: float, average: float, largest: float) -> None:
    law = Geometric(epsilon=Fraction(epsilon))
    assert law.mean_error == pytest.approx(average, rel=1e-3)
    assert traffic.law_largest(law, traffic.CELLS) == pytest.approx(largest, rel=5e-3)


def test_the_expected_maximum_is_the_continuous_one_at_large_scale() -> None:
    # The largest of n exponentials of mean s is s·H(n) on average; whole steps move it by less than one.
    for cells in (1, 10, 3_143):
        assert abs(traffic.law_largest(Geometric(epsilon=Fraction(1, 1000)), cells) - 1000 * harmonic(cells)) < 1


def test_the_slides_own_figures_are_the_laplace_law() -> None:
    for epsilon, (average, largest) in traffic.SLIDE.items():
        scale = float(1 / epsilon)
        assert average == pytest.approx(scale, rel=0.03)
        assert scale * (math.log(traffic.CELLS) - 3) < largest < scale * (math.log(traffic.CELLS) + 5)


def test_county_errors_follow_the_law_and_the_lemma() -> None:
    runs = 60
    found = counties.measure(runs)
    assert found.law_average == pytest.approx(20, rel=1e-3)
    assert abs(found.average - found.law_average) < DEVIATIONS * found.average_deviation
    assert found.bound_largest == pytest.approx(181.06, abs=0.01)
    assert found.law_largest <= found.bound_largest
    # The largest of many is nearly Gumbel, of deviation 20·π/√6 and skew 1.14: six deviations of a mean of 60.
    assert abs(found.largest - found.law_largest) < 6 * 20 * math.pi / math.sqrt(6 * runs)


def test_a_replaced_person_moves_two_counties() -> None:
    law = counties.mechanism()
    assert (law.sensitivity, law.scale, law.neighbors) == (2, Fraction(20), Neighbors.REPLACE_ONE)
    facts = Facts(account="census", sensitivity=Sensitivity(l0=2, linf=Fraction(1)), neighbors=Neighbors.REPLACE_ONE)
    meter = Meter({"census": Budget(epsilon=Fraction(1), neighbors=Neighbors.REPLACE_ONE)})
    with pytest.raises(MisfitError):
        meter.measure(
            Geometric(epsilon=Fraction(1, 10), sensitivity=1, neighbors=Neighbors.REPLACE_ONE),
            Secret(np.zeros(3, dtype=np.int64), facts),
        )


@pytest.mark.parametrize("people", [100, 1000])
def test_figure_five_follows_the_law(people: int) -> None:
    runs = 2_000
    row = figure5.estimate(people, runs=runs)
    for name in figure5.NAMES:
        law = row.law[name]
        assert abs(row.found[name].mean() - figure5.BIAS) < DEVIATIONS * law / math.sqrt(runs)
        # A deviation over n runs of kurtosis at most 3.6 has a relative error of √(2.6/4n); 5.5 of them for its skew.
        assert abs(row.deviation(name) / law - 1) < 5.5 * math.sqrt(2.6 / 4 / runs)


def test_figure_fives_laws_are_the_lectures() -> None:
    people, loss = 400, 0.5
    row = figure5.estimate(people, runs=4)
    coin = 0.25 * 0.75 / people
    response = math.exp(loss / 2) / (math.exp(loss) - 1) * math.sqrt(people)
    assert RandomizedResponse(epsilon=Fraction(1, 2)).deviation(reports=people) == pytest.approx(response)
    assert row.law["randomized response"] == pytest.approx(math.sqrt(coin + (response / people) ** 2))
    assert row.law["no privacy"] == pytest.approx(math.sqrt(coin))
    q = math.exp(-loss)
    assert row.law["Laplace"] == pytest.approx(math.sqrt(coin + 2 * q / (1 - q) ** 2 / people**2))
    assert row.law["no privacy"] < row.law["Laplace"] < row.law["randomized response"]


def test_pictures_are_drawn_and_small(tmp_path: Path, roads: tuple[np.ndarray, np.ndarray]) -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    counts, cells = roads
    meter = traffic.new_meter()
    maps = traffic.draw(counts, cells, [traffic.release(meter, one, counts) for one in traffic.EPSILONS], tmp_path)
    figure = figure5.draw([figure5.estimate(people, runs=200) for people in (50, 100)], tmp_path)
    for path in (maps, figure):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 200_000


def test_the_village_answers_twice_and_is_refused_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(village, "draw", lambda answer, truth: ROOT / "out" / "village.png")
    village.main()
    shown = capsys.readouterr().out
    assert "ε = 0 of 0.5 spent" in shown
    assert "ε = 0.4 of 0.5 spent" in shown
    assert shown.count("[budget-exceeded]") == 1
    assert "out/village.png" in shown


def test_the_village_charges_what_it_says() -> None:
    meter = Meter({village.ACCOUNT: Budget(epsilon=village.BUDGET)})
    ages = village.villagers()
    answer = village.release(meter, ages)
    assert village.spent(meter) == pytest.approx(0.2)
    assert answer.value.shape == (len(village.GROUPS),)
    assert village.histogram(ages).sum() == len(ages) == 1_200
    village.median(meter, ages)
    assert village.spent(meter) == pytest.approx(0.4)


def test_the_demo_without_matplotlib_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    village.main()
    assert 'pip install "hubbub[plot]"' in capsys.readouterr().out
