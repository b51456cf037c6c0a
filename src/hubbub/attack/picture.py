"""Pictures of findings. The only module of the lab that needs matplotlib."""

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.attack.finding import AttackFinding

_SIZE = (7.0, 4.2)


def draw(finding: "AttackFinding", path: str | Path | None = None) -> Any:
    """A figure of its own, so that no global state of a notebook changes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise HubbubError('Pictures need matplotlib: pip install "hubbub[plot]".') from None
    if finding.draw is None:
        raise HubbubError(f"There is no picture of {finding.title!r}; print it instead.")
    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    finding.draw(figure.subplots())
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def embed(finding: "AttackFinding") -> str:
    """The picture as text, for a page that needs no other file."""
    held = io.BytesIO()
    draw(finding).savefig(held, format="png", dpi=120)
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode("ascii")
