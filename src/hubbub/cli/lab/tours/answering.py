"""The gate and the mechanisms behind it."""

import math
from fractions import Fraction
from typing import Any

from hubbub.cli.lab.tours.step import StepOutcome, TourStep, bars, lines

ONE = Fraction(1)


def _gate() -> StepOutcome:
    from hubbub.cli.lab.targets import gate
    from hubbub.errors import HubbubError

    columns = {"id": range(1000), "ward": [("north", "south")[place % 3 > 0] for place in range(1000)]}
    rows = []
    with gate("stays", columns, epsilon=ONE, keys={"ward": ["north", "south"]}) as db:
        for question, epsilon in (
            ("SELECT ward, count(*) AS n FROM stays GROUP BY ward", 0.5),
            ("SELECT count(*) AS n FROM stays", 0.4),
            ("SELECT * FROM stays", 0.1),
            ("SELECT count(*) AS n FROM stays WHERE ward = 'north'", 0.4),
        ):
            try:
                answer = db.sql(question, epsilon=epsilon)
                told = "; ".join(" ".join(map(str, row)) for row in answer.rows)
            except HubbubError as refusal:
                told = f"refused: {refusal.code}"
            rows.append((question, f"{epsilon:g}", told, str(db.ledger.statement("people").odometer)))
    return StepOutcome(
        says="Questions in, noisy answers out, and no more than ε = 1 in all.",
        columns=("question", "price in ε", "answer", "spent"), rows=tuple(rows),
    )  # fmt: skip


def _laplace() -> StepOutcome:
    import numpy as np

    from hubbub.mechanisms import Geometric
    from hubbub.privacy.sensitivity import Neighbors

    counties, runs = 3143, 20
    law = Geometric(epsilon=Fraction(1, 10), sensitivity=2, neighbors=Neighbors.REPLACE_ONE)
    wrong = np.abs(law.repeat(0, times=runs * counties)).reshape(runs, counties)
    bound = 20 * (math.log(counties) + 1)
    return StepOutcome(
        says=f"{counties:,} counties at ε = 0.1 where a person may move: noise of scale 20.",
        columns=("", "drawn", "the law"),
        rows=(
            ("mean error of a county", f"{wrong.mean():.1f}", f"{law.mean_error:.1f}"),
            ("mean of the largest error", f"{wrong.max(axis=1).mean():.0f}", f"at most {bound:.0f}"),
            ("share of errors over 3 scales", f"{(wrong > 60).mean():.2%}", f"e⁻³ = {math.exp(-3):.2%}"),
        ),
        draw=_histogram(wrong.ravel(), "error of a county"),
    )


def _histogram(values: Any, label: str) -> Any:
    def draw(axes: Any) -> None:
        axes.hist(values, bins=60, color="#0072B2")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_ylabel("how often")

    return draw


def _sensitivity() -> StepOutcome:
    from hubbub.cli.lab.targets import gate
    from hubbub.policy.tables import Limits

    columns = {"id": range(100), "cost": [place % 50 for place in range(100)], "ward": ["a", "b"] * 50}
    rows = []
    with gate(
        "stays",
        columns,
        epsilon=ONE,
        bounds={"cost": (0, 50)},
        keys={"ward": ["a", "b"]},
        limits=Limits(max_groups=2, max_rows=3),
    ) as db:
        for question in (
            "SELECT count(*) AS n FROM stays",
            "SELECT count(DISTINCT id) AS n FROM stays",
            "SELECT sum(cost) AS total FROM stays",
            "SELECT ward, count(*) AS n FROM stays GROUP BY ward",
        ):
            planned = db.plan(question, epsilon=1)
            half = db.explain(question, epsilon=1).to_dict()
            noise = half["columns"][-1] if "columns" in half else {}
            rows.append((question, _noise(planned), str(noise.get("margin", noise.get("error", "")))))
    return StepOutcome(
        says="The noise follows from the plan of a question and the limits of the policy: 3 rows a group, 2 groups.",
        columns=("question", "charged as", "± 95%"), rows=tuple(rows),
    )  # fmt: skip


def _noise(planned: Any) -> str:
    event = planned.events[0]
    parts = [f"{name} {getattr(event, name)}" for name in ("scale", "sensitivity") if hasattr(event, name)]
    return ", ".join(parts) or type(event).__name__


def _geometric() -> StepOutcome:
    from hubbub.mechanisms import Geometric, TruncatedGeometric

    law, cut = Geometric(epsilon=ONE), TruncatedGeometric(epsilon=ONE, low=0, high=10)
    shown = range(-4, 11)
    plain = [math.exp(law.log_mass(2, one)) for one in shown]
    ends = [math.exp(cut.log_mass(2, one)) if 0 <= one <= 10 else 0.0 for one in shown]
    return StepOutcome(
        says="A count of 2 at ε = 1: each step away is e times less likely; cut to 0…10, the ends take what is beyond.",
        columns=("answer", "geometric", "truncated to 0…10"),
        rows=tuple((str(one), f"{p:.4f}", f"{q:.4f}") for one, p, q in zip(shown, plain, ends, strict=True)),
        draw=lines(list(shown), {"geometric": plain, "truncated": ends}, ("answer", "probability"), log=False),
    )


def _response() -> StepOutcome:
    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.mechanisms import Geometric, RandomizedResponse

    half, runs, sizes = Fraction(1, 2), 200, (50, 200, 1000, 5000)
    survey, curator = RandomizedResponse(epsilon=half), Geometric(epsilon=half)
    wrong: dict[str, list[float]] = {"randomized response": [], "Laplace": [], "no privacy": []}
    law = []
    for people in sizes:
        flips = (MadeUp(people, "coins").uniform(runs * people).reshape(runs, people) < 0.25).astype(np.int64)
        local = [float(survey.estimate(np.asarray(survey.draw(one))).counts[1]) for one in flips]
        exact = flips.sum(axis=1)
        for name, told in zip(wrong, (local, exact + curator.repeat(0, times=runs), exact), strict=True):
            wrong[name].append(float(np.sqrt(np.mean((np.asarray(told) / people - 0.25) ** 2))))
        law.append(math.sqrt((survey.deviation(reports=people) / people) ** 2 + 0.25 * 0.75 / people))
    return StepOutcome(
        says="A coin that falls on heads once in four, at ε = 0.5: everybody lies with a known probability, or a "
        "curator adds noise once, or nobody does. Trusting nobody costs a factor that more people do not take away.",
        columns=("people", *wrong, "randomized response, by the law"),
        rows=tuple(
            (f"{people:,}", *(f"{values[place]:.4f}" for values in wrong.values()), f"{law[place]:.4f}")
            for place, people in enumerate(sizes)
        ),
        draw=lines(sizes, dict(wrong), ("people", "error of the share"), log=True),
    )  # fmt: skip


def _budgets() -> StepOutcome:
    from hubbub.privacy import epsilon_of
    from hubbub.privacy.events.event import DiscreteGaussianEvent, DiscreteLaplaceEvent, RepeatedEvent

    rows = []
    for name, event in (
        ("Laplace, each ε = 0.1", DiscreteLaplaceEvent(scale=Fraction(10))),
        ("Gaussian, each ρ = 0.005", DiscreteGaussianEvent(sigma=Fraction(10))),
    ):
        for count in (1, 10, 100):
            many = [RepeatedEvent(event=event, count=count)]
            plain = f"{float(event.epsilon) * count:g}" if event.epsilon is not None else "–"
            rows.append((name, str(count), plain, f"{epsilon_of(many, delta=1e-6):.3f}"))
    return StepOutcome(
        says="Losses add up at most, and with a δ of one in a million they add up to less. Groups of one question are "
        "charged once: nobody is in two of them.",
        columns=("answers", "how many", "sum of ε", "ε at δ = 10⁻⁶"), rows=tuple(rows),
    )  # fmt: skip


def _exponential() -> StepOutcome:
    import numpy as np

    from hubbub.mechanisms import Exponential, Geometric

    mechanism, law = Exponential(epsilon=Fraction(2)), Geometric(epsilon=ONE)
    truth, outputs = 20, np.arange(41)
    scores = -np.abs(outputs - truth)
    picked = np.bincount([int(mechanism.draw(scores)) for _ in range(4000)], minlength=41) / 4000
    shown = range(16, 25)
    return StepOutcome(
        says="What scores higher is more likely. With the score −|answer − count| it is the geometric mechanism: the "
        "general proof charges ε = 2 for it, and that of the geometric law ε = 1.",
        columns=("answer", "chosen", "geometric law"),
        rows=tuple((str(one), f"{picked[one]:.3f}", f"{math.exp(law.log_mass(truth, one)):.3f}") for one in shown),
    )


def _medians() -> StepOutcome:
    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.mechanisms import Quantile, SmoothQuantile, TruncatedGeometric

    values = np.rint(np.clip(np.exp(10.3 + 0.8 * MadeUp(0, "incomes").normal(1000)), 0, 1_000_000))
    truth = float(np.sort(values)[499])
    shape: dict[str, Any] = {"bounds": (Fraction(0), Fraction(1_000_000)), "grid": ONE}
    ways = {
        "exponential mechanism": Quantile(epsilon=ONE, **shape).repeat(values, times=200),
        "smooth sensitivity": SmoothQuantile(epsilon=ONE, **shape).repeat(values, times=200),
        "Laplace for the whole range": TruncatedGeometric(
            epsilon=ONE, low=0, high=1_000_000, sensitivity=1_000_000
        ).repeat(round(truth), times=200),
    }
    wrong = {name: float(np.abs(np.asarray(found, dtype=float) - truth).mean()) for name, found in ways.items()}
    return StepOutcome(
        says=f"The median of 1,000 incomes, {truth:,.0f}, at ε = 1.",
        columns=("way", "mean error"), rows=tuple((name, f"{one:,.0f}") for name, one in wrong.items()),
        draw=bars([*wrong], [*wrong.values()], "mean error", log=True),
    )  # fmt: skip


def _smooth() -> StepOutcome:
    import numpy as np

    from hubbub.mechanisms import SmoothQuantile

    top, each = 100, 20
    quiet, brink = [0] * (each + 2) + [top] * (each - 1), [0] * (each + 1) + [top] * each
    smooth = SmoothQuantile(epsilon=ONE, bounds=(Fraction(0), Fraction(top)), grid=ONE)
    rows = []
    for name, values in (("nobody can move the median", quiet), ("one person can", brink)):
        ordered = sorted(values)
        middle = len(values) // 2
        local = max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1])
        spread = float(np.std(np.asarray(smooth.repeat(np.array(values), times=400), dtype=float)))
        rows.append((name, "0", f"{local}", f"{spread:.1f}"))
    return StepOutcome(
        says="Two tables that differ in one person, both with the median 0. Noise for what one person can do here and "
        "now is none in one of them, and a lot in the other: that tells them apart. A smooth bound looks at what is "
        "near as well.",
        columns=("the table", "median", "local sensitivity", "spread by smooth sensitivity"), rows=tuple(rows),
    )  # fmt: skip


def _sparse_vector() -> StepOutcome:
    import numpy as np

    from hubbub import audit
    from hubbub.mechanisms import Geometric, SparseVector

    answers = (1_000_000 / (np.arange(1, 1001) * 7.5)).astype(np.int64)
    rows = []
    for epsilon in (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10)):
        vector = SparseVector(epsilon=epsilon, threshold=int(answers[19]), count=20, monotone=True)
        found = [len(set(vector.draw(answers)[0]) & set(range(20))) for _ in range(20)]
        rows.append((f"ours, ε = {float(epsilon):g}", f"{np.mean(found):.1f} of the 20 largest found"))

    def broken(values: tuple[int, int]) -> tuple[bool, ...]:
        """Claims ε = 1: noise on the threshold alone, and none on the answers."""
        bar = int(Geometric(epsilon=ONE).draw(0))
        return tuple(value >= bar for value in values)

    caught = audit.lower_bound(broken, (0, 1), (1, 0))
    rows.append(("without noise on the answers, said to be ε = 1", f"ε is at least {caught.epsilon:.2f}"))
    return StepOutcome(
        says="Which of 1,000 answers are above a threshold? Only those that are cost anything. Variants that forget "
        "some of the noise are not private, and an audit says so.",
        columns=("variant", "what comes of it"), rows=tuple(rows),
    )  # fmt: skip


def _auction() -> StepOutcome:
    import numpy as np

    from hubbub.attack.made_up import MadeUp
    from hubbub.mechanisms import Price

    bids = np.rint(100 * np.clip(0.5 + 0.2 * MadeUp(0, "bids").normal(2000), 0, 1)) / 100
    prices = tuple(Fraction(step, 100) for step in range(1, 101))
    rows = []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), ONE):
        law = Price(epsilon=epsilon, prices=prices, grid=prices[0])
        earned = law.revenues(bids).astype(np.float64) / 100
        best, sold = float(earned.max()), int((bids >= float(prices[int(earned.argmax())])).sum())
        theorem = best - 3 * math.log(math.e + float(epsilon) ** 2 * best * sold) / float(epsilon)
        told = f"{theorem:,.0f}" if theorem > 0 else "nothing"
        rows.append((f"{float(epsilon):g}", f"{best:,.0f}", f"{law.expected_revenue(bids):,.0f}", told))
    return StepOutcome(
        says="2,000 buyers say what they would pay; one price for all is chosen by the exponential mechanism.",
        columns=("ε", "best revenue", "expected revenue", "the theorem promises"), rows=tuple(rows),
    )  # fmt: skip


STEPS = (
    TourStep(name="gate", title="A sanitizer that answers questions", lecture="000, 004", run=_gate,
         about="Between a curious person and a database stands a function that answers with noise and keeps accounts."),
    TourStep(name="laplace", title="Noise for what one person can change", lecture="000–004", run=_laplace,
         about="The Laplace mechanism, exact on whole numbers: its error is known before anything is asked."),
    TourStep(name="sensitivity", title="How much one person can change", lecture="000, 001, 003", run=_sensitivity,
         about="Counts, sums and histograms: sensitivities follow from the plan, not from anybody's arithmetic."),
    TourStep(name="geometric", title="The geometric mechanism, plain and truncated", lecture="001", run=_geometric,
         about="P(m | n) falls by e^−ε with each step from n; at public ends, it takes what would lie beyond."),
    TourStep(name="response", title="Randomized response", lecture="000, 003", run=_response,
         about="Privacy without anybody to trust: each person adds the noise, and the answer pays for it."),
    TourStep(name="budgets", title="Losses add up", lecture="000, 001", run=_budgets,
         about="Sequential and parallel composition, and how accountants count."),
    TourStep(name="exponential", title="The exponential mechanism", lecture="001, 002, 004", run=_exponential,
         about="For answers that are no numbers: choose what scores high, by exact chance."),
    TourStep(name="median", title="The median, three ways", lecture="001", run=_medians,
         about="Over intervals between values, the exponential mechanism needs no more than sorting."),
    TourStep(name="smooth", title="Why local sensitivity fails", lecture="001", run=_smooth,
         about="Noise that depends on the data tells about the data, unless it changes slowly."),
    TourStep(name="sparse-vector", title="Above a threshold", lecture="001", run=_sparse_vector,
         about="The sparse vector technique, in the variant that is private."),
    TourStep(name="auction", title="A price for digital goods", lecture="004", run=_auction,
         about="A price chosen at random, in favour of revenue: no word of a buyer can be read off it."),
)  # fmt: skip
