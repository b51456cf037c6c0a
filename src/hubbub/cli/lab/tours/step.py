"""One step of the tour: a topic of a lecture, run small."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.attack.finding import AttackFinding

Draw = Callable[[Any], None]
DOTS = 80
"""To an inch of a picture: small files, for pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """The output of a step: a sentence, a table, and a picture where there is one."""

    says: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    draw: Draw | None = None

    def picture(self, path: Path) -> bool:
        """Write the picture, if there is one."""
        if self.draw is None:
            return False
        AttackFinding(title="", verdict="", works=False, draw=self.draw).plot().savefig(path, dpi=DOTS)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStep:
    """A name to call it by, where it comes from, what it is about, and how it is run."""

    name: str
    title: str
    lecture: str
    """Which of the lectures tell of it."""
    about: str
    run: Callable[[], StepOutcome]


def of_findings(*found: tuple[str, AttackFinding], says: str = "") -> StepOutcome:
    """Several findings of the lab as one table; the picture is the first one's."""
    drawn = next((one.draw for _, one in found if one.draw is not None), None)
    return StepOutcome(
        says=says or found[0][1].verdict,
        columns=("target", "what the attack finds", "it works"),
        rows=tuple((name, one.verdict, "yes" if one.works else "no") for name, one in found),
        draw=drawn,
    )


def bars(names: Sequence[str], values: Sequence[float], label: str, *, log: bool = False) -> Draw:
    """A picture of a few numbers."""

    def draw(axes: Any) -> None:
        axes.barh(list(names), list(values), color="#0072B2")
        axes.invert_yaxis()
        axes.set_xlabel(label)
        if log:
            axes.set_xscale("log")

    return draw


def lines(across: Sequence[float], named: dict[str, Sequence[float]], labels: tuple[str, str], *, log: bool) -> Draw:
    """A picture of a few curves."""

    def draw(axes: Any) -> None:
        for name, values in named.items():
            axes.plot(list(across), list(values), marker="o", markersize=4, label=name)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.legend()

    return draw
