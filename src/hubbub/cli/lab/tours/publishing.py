"""Pay once, ask often: histograms, transforms, maps, sparse domains; and learning."""

from fractions import Fraction
from typing import Any

from hubbub.cli.lab.tours.step import StepOutcome, TourStep, lines


def _traffic() -> StepOutcome:
    import numpy as np

    from hubbub.mechanisms import Geometric

    slide = {"1": ("1.02", "13"), "0.01": ("98.56", "1,041"), "0.001": ("1,003.23", "9,663")}
    rows = []
    for shown, (average, largest) in slide.items():
        law = Geometric(epsilon=Fraction(shown))
        wrong = np.abs(law.repeat(0, times=64_909))
        rows.append((shown, f"{wrong.mean():,.2f}", f"{law.mean_error:,.2f}", average, f"{wrong.max():,}", largest))
    return StepOutcome(
        says="A histogram of 64,909 cells: every car is in one of them, so all of them together cost ε.",
        columns=("ε", "average error", "the law", "the slide", "largest error", "the slide"), rows=tuple(rows),
    )  # fmt: skip


def _ranges() -> StepOutcome:
    import numpy as np

    from hubbub import publish

    told = (publish.Flat(), publish.Hierarchy(), publish.Wavelet())
    sizes = (16, 64, 256, 1024)
    found: dict[str, list[float]] = {
        way.name: [way.error(publish.Ranges(length=size), 1).rmse for size in sizes] for way in told
    }
    smooth = []
    for size in sizes:  # the error of Fourier depends on the data: here a smooth hump
        truth = np.rint(5000 / size * (1 + np.cos(np.linspace(-np.pi, np.pi, size)))).astype(np.int64)
        noisy = np.cumsum(np.asarray(publish.run(truth, publish.Fourier(), epsilon=1).cells)) - np.cumsum(truth)
        ranges = noisy[:, None] - np.concatenate([[0.0], noisy[:-1]])
        smooth.append(float(np.sqrt(np.mean(ranges[np.tril_indices(size)] ** 2))))
    both = found | {"Fourier": smooth}
    return StepOutcome(
        says="The error of a range, over all ranges, at ε = 1: told beforehand for noise in every cell, a tree and a "
        "wavelet; seen once on smooth made-up counts for Fourier.",
        columns=("cells", *both), rows=tuple(
            (f"{size:,}", *(f"{values[place]:.1f}" for values in both.values())) for place, size in enumerate(sizes)
        ),
        draw=lines(sizes, dict(both), ("cells", "error of a range"), log=True),
    )  # fmt: skip


def _sensing() -> StepOutcome:
    from hubbub.publish import sensing_errors

    rows = tuple(
        (f"{one.cells:,}", f"{one.size:,}", f"{one.recovered:.0f}", f"{one.flat:.0f}")
        for one in sensing_errors(cells=(256, 1024, 4096), sparsities=(5,), releases=3)
    )
    return StepOutcome(
        says="Five large cells among many, recovered from few random sums; beside it, noise in every cell.",
        columns=("cells", "sums measured", "error of the whole histogram", "with noise in every cell"), rows=rows,
    )  # fmt: skip


def _town(people: int) -> Any:
    """Draw the homes of made-up people: three towns and the country between them, on a grid of 64 × 64."""
    import numpy as np

    from hubbub.attack.made_up import MadeUp

    source = MadeUp(0, "homes")
    centres = np.array([[0.25, 0.3], [0.7, 0.6], [0.45, 0.8]])[source.below(people, 3)]
    spread = np.stack([source.normal(people), source.normal(people)], axis=1) * 0.07
    places = np.clip(np.floor((centres + spread) * 64), 0, 63).astype(np.int64)
    counts = np.zeros((64, 64), dtype=np.int64)
    np.add.at(counts, (places[:, 0], places[:, 1]), 1)
    return counts


def _map() -> StepOutcome:
    import numpy as np

    from hubbub import publish
    from hubbub.publish import spatial

    counts = _town(20_000)
    ways = (publish.Flat(), spatial.QuadTree(), spatial.KdTree(), spatial.AdaptiveGrid())
    made = {way.name: np.asarray(publish.run(counts, way, epsilon=Fraction(1, 10)).cells) for way in ways}
    rows = []
    for name, cells in made.items():
        wrong = [abs(cells[:a, :b].sum() - counts[:a, :b].sum()) for a in (8, 24, 40, 56) for b in (8, 24, 40, 56)]
        rows.append((name, f"{np.mean(wrong):,.0f}"))

    def draw(axes: Any) -> None:
        both = np.hstack([counts, np.full((64, 2), np.nan), made["adaptive grid"]])
        top = float(np.sqrt(counts.max()))
        axes.imshow(np.sqrt(np.maximum(both, 0)), cmap="cividis", interpolation="nearest", vmin=0, vmax=top)
        axes.set_title("the truth (made up)        an adaptive grid at ε = 0.1", fontsize=10)
        axes.set_axis_off()

    return StepOutcome(
        says="20,000 made-up homes on a grid of 64 × 64 at ε = 0.1: boxes asked of four decompositions.",
        columns=("decomposition", "mean error of a box"), rows=tuple(rows), draw=draw,
    )  # fmt: skip


def _flows() -> StepOutcome:
    import numpy as np

    from hubbub import publish
    from hubbub.attack.made_up import MadeUp

    people, side = 20_000, 6
    source = MadeUp(0, "workers")
    homes = source.below(people, side * side)
    works = np.where(source.uniform(people) < 0.5, homes, source.below(people, side * side))
    counts = np.zeros((side, side, side, side), dtype=np.int64)
    np.add.at(counts, (*np.divmod(homes, side), *np.divmod(works, side)), 1)
    noisy = np.asarray(publish.run(counts, publish.Flat(), epsilon=1).cells)
    rows = []
    for place in range(0, side * side, 7):
        at = divmod(place, side)
        rows.append((f"{at}", f"{counts[:, :, at[0], at[1]].sum():,}", f"{noisy[:, :, at[0], at[1]].sum():,.0f}"))
    return StepOutcome(
        says="Where workers live and where they work: 1,296 pairs of places, counted at ε = 1.",
        columns=("place of work", "workers (made up)", "released"), rows=tuple(rows),
    )  # fmt: skip


def _sparse() -> StepOutcome:
    import time

    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.publish import sparse

    source = MadeUp(0, "pages")
    rows = []
    for power in (20, 30, 40):
        codes = np.unique(source.below(20_000, 1 << power))
        counts = np.rint(5 + 20 / (0.01 + source.uniform(len(codes)))).astype(np.int64)
        start = time.perf_counter()
        found = sparse.run(codes, counts, 1 << power, sparse.Threshold(expected_false=10), epsilon=1)
        rows.append((f"2^{power}", f"{len(codes):,}", f"{len(found):,}", f"{time.perf_counter() - start:.2f} s"))
    return StepOutcome(
        says="Empty cells need noise too, but only those that pass a threshold need to be drawn: how many do is one "
        "binomial number.",
        columns=("cells", "not empty", "released", "time"), rows=tuple(rows),
    )  # fmt: skip


def _cube() -> StepOutcome:
    import numpy as np

    from hubbub import publish
    from hubbub.attack.made_up import MadeUp

    codes = MadeUp(0, "cube").bits(5000, 6).astype(np.int64)
    domain = publish.Domain.of({f"a{place}": range(2) for place in range(6)})
    found = publish.run_table(codes, domain, publish.Marginals(ways=2), epsilon=1)
    rows = []
    for one, two in (("a0", "a1"), ("a0", "a5"), ("a4", "a5")):
        noisy = found.marginal(one, two).values
        truth = np.zeros((2, 2))
        np.add.at(truth, (codes[:, int(one[1])], codes[:, int(two[1])]), 1)
        rows.append((f"{one} × {two}", f"{np.abs(noisy - truth).mean():.1f}", f"{noisy.sum(axis=1)[0]:.1f}"))
    return StepOutcome(
        says="All 15 tables of two of six attributes at ε = 1: they agree wherever they share an attribute.",
        columns=("table", "mean error of a cell", "a total that tables share"), rows=tuple(rows),
    )  # fmt: skip


def _program() -> StepOutcome:
    import hubbub as hb
    from hubbub.attack.made_up import MadeUp
    from hubbub.cli.lab.targets import gate
    from hubbub.policy.tables import Limits

    source = MadeUp(0, "stays")
    ages = source.below(2000, 60) + 20
    costs = 3 * ages + source.below(2000, 20)
    columns = {"id": range(2000), "age": ages.tolist(), "cost": costs.tolist()}
    with gate("stays", columns, epsilon=Fraction(2), limits=Limits(lanes=4)) as db:  # nobody's rows: blocks may contend
        found = hb.sample_and_aggregate(
            db.table("stays"), _slope, columns=["age", "cost"], blocks=20, bounds=(0, 10), epsilon=2, seconds=0.2
        )
    return StepOutcome(
        says="Any program, run on blocks of people, each in a sandbox; the middle of what they say, with noise.",
        columns=("the slope of cost over age", "released"), rows=(("3 (made up)", str(found)),),
    )  # fmt: skip


def _slope(rows: Any) -> float:
    """A program that knows nothing of privacy."""
    age, cost = rows["age"], rows["cost"]
    return float(((age - age.mean()) * (cost - cost.mean())).sum() / ((age - age.mean()) ** 2).sum())


def _kmeans() -> StepOutcome:
    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.learn import KMeans

    source, people = MadeUp(0, "clusters"), 5000
    middles = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    noise = np.stack([source.normal(people), source.normal(people)], axis=1)
    points = np.clip(middles[source.below(people, 3)] + 0.12 * noise, -1, 1)
    found = {epsilon: KMeans(3, epsilon=epsilon, bounds=(-1, 1)).fit(points) for epsilon in (0.1, 1.0)}
    rows = []
    for epsilon, model in found.items():
        off = [float(np.linalg.norm(model.cluster_centers_ - one, axis=1).min()) for one in middles]
        rows.append((f"{epsilon:g}", f"{np.mean(off):.3f}", f"{max(off):.3f}"))

    def draw(axes: Any) -> None:
        axes.plot(points[:1500, 0], points[:1500, 1], ".", color="#bbbbbb", markersize=2)
        for (epsilon, model), colour in zip(found.items(), ("#D55E00", "#0072B2"), strict=True):
            centres = model.cluster_centers_
            axes.plot(centres[:, 0], centres[:, 1], "X", color=colour, markersize=11, label=f"ε = {epsilon:g}")
        axes.set_aspect("equal")
        axes.legend()

    return StepOutcome(
        says="k-means of 5,000 made-up points by noisy sums and counts.",
        columns=("ε", "mean distance to a centre", "largest"), rows=tuple(rows), draw=draw,
    )  # fmt: skip


def _learning() -> StepOutcome:
    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.learn import PCA, LinearRegression, LinearSVC, LogisticRegression, Perceptron

    source, people = MadeUp(0, "learning"), 5000
    signs = 2 * source.bits(people).astype(np.int64) - 1
    noise = np.stack([source.normal(people) for _ in range(3)], axis=1)
    rows = np.clip(0.4 * signs[:, None] + 0.5 * noise, -2, 2)
    shape: dict[str, Any] = {"epsilon": 1.0, "bounds": (-2, 2), "classes": [-1, 1]}
    table = [
        (type(one).__name__, "right", f"{float(one.fit(rows, signs).score(rows, signs)):.1%}")
        for one in (Perceptron(**shape), LogisticRegression(**shape), LinearSVC(**shape))
    ]
    target = rows @ np.array([1.0, -0.5, 0.0]) + 0.2 * source.normal(people)
    line = LinearRegression(epsilon=1.0, delta=1e-6, bounds=(-2, 2), y_bounds=(-4, 4)).fit(rows, target)
    table.append(("LinearRegression", "R²", f"{float(line.score(rows, target)):.3f}"))
    share = PCA(1, epsilon=1.0, delta=1e-6, bounds=(-2, 2)).fit(rows).explained_variance_ratio_[0]
    table.append(("PCA", "variance of the first component", f"{float(share):.1%}"))
    return StepOutcome(
        says="Learning needs averages over people, not people: five models of 5,000 made-up rows at ε = 1.",
        columns=("model", "what", "at ε = 1"), rows=tuple(table),
    )  # fmt: skip


STEPS = (
    TourStep(name="histogram", title="Traffic in 64,909 cells", lecture="004", run=_traffic,
         about="One release of a whole histogram, beside the numbers on the slide and the law behind them."),
    TourStep(name="ranges", title="Ranges from trees, wavelets and Fourier", lecture="001", run=_ranges,
         about="Noise in another basis: what a range needs is few coefficients, and so little noise."),
    TourStep(name="sensing", title="Compressed sensing", lecture="001", run=_sensing,
         about="A sketch of random sums has noise for few numbers, and few large cells can be read off it."),
    TourStep(name="map", title="A map from a private decomposition of space", lecture="001", run=_map,
         about="Quadtrees and kd-trees split the budget over levels and are made consistent afterwards."),
    TourStep(name="flows", title="Where workers live and work", lecture="000", run=_flows,
         about="Counts of pairs of places, as OnTheMap shows them."),
    TourStep(name="sparse", title="A trillion cells, nearly all empty", lecture="001", run=_sparse,
         about="Noise over a huge domain without drawing it everywhere: the same law as the dense mechanism's."),
    TourStep(name="cube", title="Data cubes that agree", lecture="001", run=_cube,
         about="All tables of two attributes from one set of noisy coefficients."),
    TourStep(name="program", title="Any program, on blocks of people", lecture="001", run=_program,
         about="Sample-and-aggregate: the program is not trusted, and need not be private."),
    TourStep(name="kmeans", title="k-means by statistical queries", lecture="000, 002, 004", run=_kmeans,
         about="An algorithm that only asks for sums and counts can ask for noisy ones."),
    TourStep(name="learning", title="Perceptron, regression, principal components", lecture="002", run=_learning,
         about="Estimators of scikit-learn's kind, with ε as a parameter and a claim that they keep."),
)  # fmt: skip
