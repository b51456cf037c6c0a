"""Measuring in stages: exact laws on tiny maps, charges that no plan may exceed, and the claim on every neighbour."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from hubbub.errors import HubbubError, ParameterError
from hubbub.mechanisms.base import Array
from hubbub.mechanisms.specimens.staged import CountThenLook, CutOnly, SplitOnly
from hubbub.mechanisms.staged.quads import Forest, Quads
from hubbub.mechanisms.staged.splits import Cuts, Rule, Splits
from hubbub.mechanisms.staged.staged import GRAIN, Staged, Step, Sums, Tariff
from hubbub.privacy.sensitivity import Neighbors

ONE = Fraction(1)
RNG = np.random.default_rng(9)


@dataclass(frozen=True)
class Fixed:
    shape: tuple[int, ...]
    steps: tuple[Step, ...]

    def step(self, told: Sequence[Array]) -> Step | None:
        return self.steps[len(told)] if len(told) < len(self.steps) else None


def answers(splits: Splits) -> list[tuple[int, ...]]:
    """Every answer there can be: bits depth by depth, for the nodes that exist."""
    quads = splits.quads
    found: list[tuple[tuple[int, ...], Array]] = [((), np.arange(quads.count(splits.depths.start)))]
    for depth in splits.depths:
        grown: list[tuple[tuple[int, ...], Array]] = []
        for bits, living in found:
            for own in itertools.product((0, 1), repeat=len(living)):
                split = living[np.array(own, dtype=bool)] if len(living) else living
                grown.append(((*bits, *own), np.flatnonzero(np.isin(quads.parents(depth), split))))
        found = grown
    return [bits for bits, _ in found]


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (1, 7), (6, 16)])
def test_quadrants_are_nested_and_hold_every_cell_once(shape: tuple[int, ...]) -> None:
    quads = Quads(shape)
    assert quads.parts(quads.height) == shape
    for depth in range(quads.height):
        above, below = quads.labels(depth), quads.labels(depth + 1)
        assert np.unique(above).tolist() == list(range(math.prod(quads.parts(depth))))
        assert np.array_equal(quads.parents(depth)[below], above)
        (tops, bottoms), (lefts, rights) = quads.boxes(depth, np.unique(above))
        for node, (top, bottom, left, right) in enumerate(zip(tops, bottoms, lefts, rights, strict=True)):
            assert (above[top:bottom, left:right] == node).all()
            assert (above == node).sum() == (bottom - top) * (right - left)


def test_a_forest_has_the_quadrants_of_each_rectangle() -> None:
    forest = Forest((6, 7), ((0, 1, 0, 3), (1, 6, 0, 3), (0, 2, 3, 7), (2, 6, 3, 7)))
    assert forest.height == 3
    assert forest.count(0) == 4
    assert np.unique(forest.labels(3)).tolist() == list(range(42))
    for depth in range(4):
        labels = forest.labels(depth)
        nodes = np.arange(forest.count(depth))
        assert np.unique(labels).tolist() == nodes.tolist()
        (tops, bottoms), (lefts, rights) = forest.boxes(depth, nodes)
        for node, (top, bottom, left, right) in enumerate(zip(tops, bottoms, lefts, rights, strict=True)):
            assert (labels[top:bottom, left:right] == node).all()
            assert (labels == node).sum() == (bottom - top) * (right - left)
        if depth:
            assert np.array_equal(forest.parents(depth - 1)[labels], forest.labels(depth - 1))
    whole = Forest((5, 3), ((0, 5, 0, 3),))
    assert all(np.array_equal(whole.labels(depth), Quads((5, 3)).labels(depth)) for depth in range(4))


@pytest.mark.parametrize(
    "regions",
    [
        (),
        ((0, 2, 0, 2),),
        ((0, 2, 0, 2), (0, 2, 1, 3)),
        ((0, 2, 0, 3), (0, 2, 0, 3)),
        ((0, 2, 0, 4),),
        ((0, 2, 0, 3), (1, 1, 0, 3)),
        ((0, 2, 0, 2), (0, 1, 2, 4)),
    ],
)
def test_rectangles_that_miss_or_share_a_cell_are_refused(regions: tuple[tuple[int, int, int, int], ...]) -> None:
    with pytest.raises(TypeError, match="every cell once"):
        Forest((2, 3), regions)


@pytest.mark.parametrize(
    ("rows", "neighbors", "least"),
    [(1, Neighbors.ADD_REMOVE, 0.8), (2, Neighbors.ADD_REMOVE, 0.8), (1, Neighbors.REPLACE_ONE, 0.49)],
)
def test_splits_keep_their_claim_on_all_neighbours_of_many_maps(rows: int, neighbors: Neighbors, least: float) -> None:
    """Exact log masses of every answer. The loss comes near the claim, so that a lesser scale would be seen.

    Where a unit is replaced, what leaves the shared nodes cancels, and half the claim is all that there is.
    """
    splits = Splits(shape=(2, 4), weight=GRAIN, base=2)
    mechanism = Staged(epsilon=ONE, plan=Fixed((2, 4), (splits,)), rows=rows, neighbors=neighbors)
    every, decay = answers(splits), splits.decay(mechanism.price)
    worst = 0.0
    for level in (0, decay - 1, decay, decay + 1, 2 * decay):
        base = np.zeros((2, 4), dtype=np.int64)
        base[0, 0] = level
        units = [np.bincount(places, minlength=8).reshape(2, 4) for places in itertools.product((0, 7), repeat=rows)]
        pairs = [(base, base + unit) for unit in units]
        if neighbors is Neighbors.REPLACE_ONE:
            pairs = [(base + one, base + two) for one, two in itertools.product(units, repeat=2)]
        for x, y in pairs:
            masses = np.array([[mechanism.log_mass(cells, bits) for bits in every] for cells in (x, y)])
            assert np.exp(masses[0]).sum() == pytest.approx(1)
            worst = max(worst, float(np.abs(masses[0] - masses[1]).max()))
    assert least < worst <= 1 + 1e-9


def test_splits_are_drawn_from_their_law() -> None:
    """False alarm 1e-6, by a normal bound for the likeliest answers."""
    mechanism = Staged(epsilon=ONE * 2, plan=SplitOnly(shape=(2, 2)))
    cells, times = np.array([[1, 0], [0, 2]]), 4000
    drawn = mechanism.repeat(cells, times=times)
    for bits in ((0,), (1,)):
        chance = math.exp(mechanism.log_mass(cells, bits))
        off = abs(drawn.count(bits) / times - chance)
        assert off <= 4.9 * math.sqrt(chance * (1 - chance) / times)
    assert mechanism.log_mass(cells, (2,)) == mechanism.log_mass(cells, (0, 0)) == -math.inf


def test_several_depths_and_steps_are_drawn_from_their_law_together() -> None:
    """Splits of two depths, and a cut after them. False alarm below 1e-6 for all answers, by Bernstein's bound."""
    splits = Splits(shape=(2, 4), weight=GRAIN // 2, base=2)
    region = Cuts(shape=(2, 4), regions=np.array([[0, 2, 0, 4, 1]]), weight=GRAIN // 2)
    mechanism = Staged(epsilon=4 * ONE, plan=Fixed((2, 4), (splits, region)))
    cells, times = np.array([[3, 0, 1, 0], [0, 1, 0, 2]]), 40_000
    drawn = mechanism.repeat(cells, times=times)
    every = [(*bits, cut) for bits in answers(splits) for cut in (1, 2, 3)]
    assert set(drawn) <= set(every)
    seen = Counter(drawn)
    for answer in every:
        chance = math.exp(mechanism.log_mass(cells, answer))
        room = math.log(2e6 * len(every))
        bound = math.sqrt(2 * room * times * chance) + room
        assert abs(seen[answer] - times * chance) <= bound
    [(likely, number)] = seen.most_common(1)
    assert 0.4 < drawn[: times // 2].count(likely) / number < 0.6, "answers that are alike lie together"
    assert mechanism.repeat(cells, times=0) == []


def test_splits_below_rectangles_keep_their_claim() -> None:
    """Roots of different heights: one more row anywhere, exact log masses of every answer."""
    splits = Splits(shape=(2, 4), weight=GRAIN, base=2, regions=((0, 2, 0, 1), (0, 2, 1, 4)))
    mechanism = Staged(epsilon=ONE, plan=Fixed((2, 4), (splits,)))
    every, decay, worst = answers(splits), splits.decay(mechanism.price), 0.0
    for level, place in itertools.product((0, decay, 2 * decay), ((0, 0), (0, 1), (1, 3))):
        base = np.zeros((2, 4), dtype=np.int64)
        base[place] = level
        other = base.copy()
        other[place] += 1
        masses = np.array([[mechanism.log_mass(cells, bits) for bits in every] for cells in (base, other)])
        assert np.exp(masses[0]).sum() == pytest.approx(1)
        worst = max(worst, float(np.abs(masses[0] - masses[1]).max()))
    assert 0.8 < worst <= 1 + 1e-9
    drawn = mechanism.repeat(base, times=20)
    assert set(drawn) <= set(every)


@pytest.mark.parametrize(("rule", "least"), [(Rule.MEDIAN, 0.5), (Rule.CONTRAST, 0.75)])
@pytest.mark.parametrize("rows", [1, 2])
def test_cuts_keep_their_claim_whatever_the_rows(rows: int, rule: Rule, least: float) -> None:
    mechanism, worst = Staged(epsilon=ONE, plan=CutOnly(rule=rule), rows=rows), 0.0
    for base in itertools.product((0, 1, 4) if rule is Rule.MEDIAN else (0, 5, 20), repeat=4):
        for places in itertools.combinations_with_replacement(range(4), rows):
            other = np.array(base) + np.bincount(places, minlength=4)
            both = np.array([[base], [other]])
            masses = np.array([[mechanism.log_mass(one, (cut,)) for cut in (1, 2, 3)] for one in both])
            assert np.exp(masses[0]).sum() == pytest.approx(1)
            worst = max(worst, float(np.abs(masses[0] - masses[1]).max()))
    assert least < worst <= 1 + 1e-12


def test_a_cut_has_the_law_of_its_scores() -> None:
    mechanism = Staged(epsilon=ONE, plan=CutOnly())
    cells = np.array([[3, 0, 5, 1]])
    weights = np.exp(-np.abs(2 * np.array([3, 3, 8]) - 9) / 2)
    found = [math.exp(mechanism.log_mass(cells, (cut,))) for cut in (1, 2, 3)]
    assert found == pytest.approx((weights / weights.sum()).tolist())
    assert mechanism.log_mass(cells, (0,)) == mechanism.log_mass(cells, (4,)) == -math.inf
    drawn = [cut for (cut,) in mechanism.repeat(cells, times=3000)]
    for cut, chance in zip((1, 2, 3), found, strict=True):
        assert abs(drawn.count(cut) / 3000 - chance) <= 5 * math.sqrt(chance * (1 - chance) / 3000)


def test_a_contrast_has_the_law_of_its_scores() -> None:
    """|n·L - u·T| for four columns, at a rate of a sixth of the price. False alarm 1e-6."""
    mechanism = Staged(epsilon=ONE, plan=CutOnly(rule=Rule.CONTRAST))
    cells = np.array([[9, 0, 1, 2]])
    weights = np.exp(np.abs(4 * np.array([9, 9, 10]) - np.array([1, 2, 3]) * 12) / 6)
    found = [math.exp(mechanism.log_mass(cells, (cut,))) for cut in (1, 2, 3)]
    assert found == pytest.approx((weights / weights.sum()).tolist())
    assert mechanism.log_mass(cells, (0,)) == mechanism.log_mass(cells, (4,)) == -math.inf
    drawn = [cut for (cut,) in mechanism.repeat(cells, times=3000)]
    for cut, chance in zip((1, 2, 3), found, strict=True):
        assert abs(drawn.count(cut) / 3000 - chance) <= 5 * math.sqrt(chance * (1 - chance) / 3000)
    huge = np.array([[1 << 59, 0, 0, 0]])
    assert mechanism.repeat(huge, times=5) == [(1,)] * 5


@pytest.mark.parametrize("rule", list(Rule))
def test_rectangles_of_one_cell_are_not_cut(rule: Rule) -> None:
    cuts = Cuts(shape=(1, 3), regions=np.array([[0, 1, 0, 1, 1], [0, 1, 1, 3, 1]]), weight=GRAIN, rule=rule)
    mechanism = Staged(epsilon=ONE, plan=Fixed((1, 3), (cuts,)))
    assert mechanism.draw(np.array([[5, 5, 5]])).tolist() == [0, 2]
    assert mechanism.log_mass(np.array([[5, 5, 5]]), (0, 2)) == 0


def test_sums_lose_their_charge_and_no_more() -> None:
    labels = np.array([[0, 0], [1, -1]])
    step = Sums(labels=labels, weights=np.array([GRAIN // 2, GRAIN]))
    mechanism = Staged(epsilon=4 * ONE, plan=Fixed((2, 2), (step,)), rows=2)
    assert step.charges.tolist() == [[GRAIN // 2, GRAIN // 2], [GRAIN, 0]]
    base, every = np.zeros((2, 2), dtype=np.int64), list(itertools.product(range(-16, 18), repeat=2))
    before = np.array([mechanism.log_mass(base, one) for one in every])
    assert np.exp(before).sum() == pytest.approx(1, abs=1e-6)
    for place, loss in (((0, 0), 1), ((0, 1), 1), ((1, 0), 2), ((1, 1), 0)):
        other = base.copy()
        other[place] += 1
        after = np.array([mechanism.log_mass(other, one) for one in every])
        assert np.abs(after - before).max() == pytest.approx(loss)
    ratios = np.exp([-1.0, -2.0])
    assert step.variances(mechanism.price) == pytest.approx(2 * ratios / (1 - ratios) ** 2)


def test_a_group_without_a_charge_is_not_looked_at() -> None:
    step = Sums(labels=np.array([[0, 1]]), weights=np.array([GRAIN, 0]))
    mechanism = Staged(epsilon=ONE, plan=Fixed((1, 2), (step,)))
    cells = np.array([[3, 10**6]])
    assert all(mechanism.draw(cells)[1] == 0 for _ in range(20))
    assert mechanism.log_mass(cells, (3, 1)) == -math.inf
    assert mechanism.log_mass(cells, (3, 0)) == mechanism.log_mass(np.array([[3, 0]]), (3, 0))
    assert np.isinf(step.variances(mechanism.price)[1])


def test_no_plan_charges_a_cell_more_than_the_price() -> None:
    half = Sums(labels=np.zeros((1, 2), dtype=np.int64), weights=np.array([GRAIN // 2]))
    more = Sums(labels=np.array([[-1, 0]]), weights=np.array([GRAIN // 2 + 1]))
    exactly = Sums(labels=np.array([[0, 1]]), weights=np.array([GRAIN // 2, GRAIN // 2]))
    assert len(Staged(epsilon=ONE, plan=Fixed((1, 2), (half, exactly))).draw(np.array([[1, 2]]))) == 3
    with pytest.raises(HubbubError, match="whole price"):
        Staged(epsilon=ONE, plan=Fixed((1, 2), (half, more))).draw(np.array([[1, 2]]))
    overlapping = Cuts(shape=(1, 3), regions=np.array([[0, 1, 0, 2, 1], [0, 1, 1, 3, 1]]), weight=GRAIN // 2 + 1)
    with pytest.raises(HubbubError, match="whole price"):
        Staged(epsilon=ONE, plan=Fixed((1, 3), (overlapping,))).draw(np.array([[1, 2, 3]]))
    less = Sums(labels=np.zeros((1, 2), dtype=np.int64), weights=np.array([-1]))
    with pytest.raises(TypeError, match="whole parts"):
        Staged(epsilon=ONE, plan=Fixed((1, 2), (less,))).draw(np.array([[1, 2]]))


def test_what_comes_next_depends_on_what_was_released() -> None:
    mechanism = Staged(epsilon=ONE, plan=CountThenLook())
    cells = np.array([[2, 1]])
    assert {len(mechanism.draw(cells)) for _ in range(60)} == {1, 2}
    for output in ((5, 3), (1,), (-4,)):
        steps, told = mechanism.parse(output)
        assert np.concatenate(told).tolist() == list(output)
        assert len(steps) == len(output)
    for wrong in ((5,), (1, 3), ()):
        with pytest.raises(ParameterError, match="as many as the plan"):
            mechanism.parse(wrong)
        assert mechanism.log_mass(cells, wrong) == -math.inf


def test_numbers_of_any_size_are_summed_exactly() -> None:
    step = Sums(labels=np.zeros((1, 3), dtype=np.int64), weights=np.array([GRAIN]))
    mechanism = Staged(epsilon=ONE * 40, plan=Fixed((1, 3), (step,)))
    huge = (1 << 62) + 1
    assert mechanism.draw(np.array([[huge, huge, huge]])).tolist() == [3 * huge]
    assert step.sums(np.array([[huge, 1, 0]], dtype=object)).tolist() == [huge + 1]


@pytest.mark.parametrize("value", [np.zeros((1, 3), dtype=np.int64), np.zeros((1, 2))])
def test_only_whole_numbers_of_the_shape_are_taken(value: Array) -> None:
    with pytest.raises(ParameterError, match="whole numbers"):
        Staged(epsilon=ONE, plan=CountThenLook()).draw(value)


def test_no_error_is_stated() -> None:
    with pytest.raises(HubbubError, match="depends on the data"):
        Staged(epsilon=ONE, plan=CountThenLook()).error(beta=0.1)


def test_decay_and_scale_are_what_the_proof_asks_for() -> None:
    price = Tariff(epsilon=ONE / 10, moved=3, neighbors=Neighbors.ADD_REMOVE)
    splits = Splits(shape=(8, 8), weight=GRAIN // 2, base=4)
    assert splits.scale(price) == (1 + 1 + Fraction(1, 4)) * 60
    assert math.exp(-splits.decay(price) / float(splits.scale(price))) <= 1 / 4
    assert Splits(shape=(8, 8), weight=GRAIN, top=2).scale(price) == 30
    assert Splits(shape=(8, 8), weight=GRAIN, tall=Fraction(1, 2), top=2).threshold(price) == 15
