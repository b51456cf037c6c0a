"""The tour: the topics of the lectures behind Hubbub, one small run each. Also the source of docs/gallery."""

from hubbub.cli.lab.tours import answering, failing, publishing, reading
from hubbub.cli.lab.tours.step import StepOutcome, TourStep

STEPS: dict[str, TourStep] = {
    step.name: step for step in (*failing.STEPS, *answering.STEPS, *publishing.STEPS, *reading.STEPS)
}
"""By name, in the order of the tour: why the older ways fail, what is done instead, what comes of it."""

__all__ = ["STEPS", "StepOutcome", "TourStep"]
