"""The tour: what the lectures behind Hubbub tell of, one small run each. Also the source of docs/gallery."""

from hubbub.cli.tours import answering, failing, publishing, reading
from hubbub.cli.tours.step import Seen, Step

STEPS: dict[str, Step] = {
    step.name: step for step in (*failing.STEPS, *answering.STEPS, *publishing.STEPS, *reading.STEPS)
}
"""By name, in the order of the tour: why the older ways fail, what is done instead, what comes of it."""

__all__ = ["STEPS", "Seen", "Step"]
