"""The gate by itself: a noisy histogram of a generated village, its error bars, its price, and a refusal.

Run it with ``python examples/village.py``. The people are generated here, so the truth may stand beside the answers;
with real people it never does.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.pictures import BLUE, GREY, ORANGE, OUT, ROOT, SKY, blank, save
from hubbub import Budget, Facts, HubbubError, Meter, Release, Secret, Sensitivity
from hubbub.mechanisms import Geometric, Quantile
from hubbub.privacy import Pure, explain

Array = np.ndarray[Any, Any]

ACCOUNT = "village"
BUDGET = Fraction(1, 2)
ASKED = Fraction(1, 5)
GROUPS = tuple(f"{low}–{low + 9}" for low in range(0, 90, 10))
WIDTH = 44


def villagers(seed: int = 7) -> Array:
    """The ages of some 1,200 people who do not exist: families, and fewer and fewer of the old."""
    rng = np.random.default_rng(seed)
    adults = rng.gamma(6.5, 7.2, size=930)
    children = rng.uniform(0, 18, size=270)
    ages: Array = np.clip(np.concatenate([adults, children]), 0, 89).astype(np.int64)
    return ages


def histogram(ages: Array) -> Array:
    """People in each ten years of age."""
    return np.bincount(ages // 10, minlength=len(GROUPS))


def release(meter: Meter, ages: Array) -> Release:
    """Each person is in one group, so adding or removing one changes one count by one."""
    facts = Facts(account=ACCOUNT, sensitivity=Sensitivity(l0=1, linf=Fraction(1)))
    return meter.measure(Geometric(epsilon=ASKED), Secret(histogram(ages), facts), label="people")


def median(meter: Meter, ages: Array) -> Release:
    """The median age, from the same budget."""
    facts = Facts(account=ACCOUNT, sensitivity=Sensitivity(rows=1), grid=None)
    bounds = (Fraction(0), Fraction(120))
    return meter.measure(Quantile(epsilon=ASKED, bounds=bounds, grid=Fraction(1)), Secret(ages, facts), label="age")


def bar(low: float, value: float, high: float, truth: float, most: float) -> Text:
    """Solid up to the interval, shaded across it, with the noisy count and the truth marked."""
    text = Text()
    ends = [max(0, round(part / most * (WIDTH - 1))) for part in (low, value, high, truth)]
    for place in range(WIDTH):
        if place == ends[3]:
            text.append("◆", style="bold " + ORANGE)
        elif place == ends[1]:
            text.append("┃", style="bold " + BLUE)
        elif place < ends[0]:
            text.append("█", style=BLUE)
        elif place <= ends[2]:
            text.append("▒", style=BLUE)
        else:
            text.append(" ")
    return text


def show_table(console: Console, answer: Release, truth: Array) -> None:
    """The histogram in the terminal."""
    interval = answer.interval()
    table = Table(title=f"People by age, ε = {float(ASKED):g}", title_justify="left", title_style="bold", box=None)
    for heading in ("age", "count", "± 95%", "truth"):
        table.add_column(heading, justify="right")
    table.add_column(f"▒ 95% interval   ┃ noisy   [{ORANGE}]◆[/] truth")
    most = float(max(interval.high.max(), truth.max()))
    for index, group in enumerate(GROUPS):
        low, value, high = (float(part[index]) for part in (interval.low, answer.value, interval.high))
        margin = f"{high - value:.0f}"
        table.add_row(
            group, f"{value:.0f}", margin, str(truth[index]), bar(low, value, high, float(truth[index]), most)
        )
    console.print(table)


def spent(meter: Meter) -> float:
    """What the account has spent."""
    loss = meter.spent(ACCOUNT)
    assert isinstance(loss, Pure)
    return float(loss.epsilon)


def show_budget(console: Console, meter: Meter, when: str) -> None:
    """How much of the budget is gone."""
    used = spent(meter)
    filled = round(used / float(BUDGET) * 30)
    gauge = Text("█" * filled, style=ORANGE) + Text("░" * (30 - filled), style=GREY)
    console.print(Text(f"budget {when}: ").append(gauge).append(f"  ε = {used:.2g} of {float(BUDGET):g} spent"))


def draw(answer: Release, truth: Array, folder: Path = OUT) -> Path:
    """The histogram as a picture."""
    figure = blank(7.6, 4.3)
    axes = figure.subplots()
    interval = answer.interval()
    places = np.arange(len(GROUPS))
    reach = np.vstack([answer.value - interval.low, interval.high - answer.value])
    axes.bar(places, np.maximum(answer.value, 0), width=0.78, color=SKY, alpha=0.75, label="released: noisy count")
    axes.errorbar(
        places,
        answer.value,
        yerr=reach,
        fmt="none",
        ecolor="black",
        elinewidth=1.4,
        capsize=4,
        label="95% interval of each",
    )
    axes.plot(
        places, truth, "D", color=ORANGE, markeredgecolor="white", markersize=7, label="truth (known: generated here)"
    )
    axes.set_xticks(places, GROUPS)
    axes.set_xlabel("age, years")
    axes.set_ylabel("people")
    axes.set_ylim(bottom=min(0.0, float(interval.low.min())))
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_title(f"A generated village by age, ε = {float(ASKED):g} (add or remove one person)")
    axes.legend(loc="upper right")
    figure.supxlabel(_caption(answer), fontsize=8.5, color=GREY, x=0.01, ha="left")
    return save(figure, "village.png", folder)


def _caption(answer: Release) -> str:
    mechanism = answer.mechanism
    assert isinstance(mechanism, Geometric)
    return f"Exact two-sided geometric noise of scale {float(mechanism.scale):g}; nobody in this picture exists."


def main() -> None:
    """Ask, see, be refused, draw."""
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    ages = villagers()
    truth = histogram(ages)
    meter = Meter({ACCOUNT: Budget(epsilon=BUDGET)})
    console.rule("[bold]Hubbub: a village that does not exist, asked three times")
    console.print(
        "Protected: one person, added or removed. The truth is shown because the people are generated here.\n"
    )
    show_budget(console, meter, "before")

    console.print("\n[bold]1. How old are they?[/]")
    answer = release(meter, ages)
    show_table(console, answer, truth)
    inside = int(np.sum((answer.interval().low <= truth) & (truth <= answer.interval().high)))
    console.print(f"{inside} of {len(GROUPS)} intervals hold the truth; each does so with probability 95%.")
    show_budget(console, meter, "after ")

    console.print("\n[bold]2. What is the median age?[/]")
    middle = median(meter, ages)
    console.print(f"{middle.value} years, at {middle.loss} (truth: {int(np.median(ages))})")
    console.print(f"No interval: {middle.why_no_interval}", style=GREY)
    show_budget(console, meter, "after ")

    console.print("\n[bold]3. How old are they, once more?[/]")
    try:
        release(meter, ages)
    except HubbubError as refusal:
        console.print(Text(str(refusal), style="bold " + ORANGE))  # plain text: the code in brackets is not markup
    console.print("Nothing was read and nothing was spent.")

    console.print("\n[bold]What that means for a villager[/]")
    console.print(str(explain(spent(meter))))
    try:
        picture = draw(answer, truth)
    except HubbubError as missing:
        console.print(Text(f"\nNo picture: {missing}"))
    else:
        console.print(f"\nThe picture: {picture.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
