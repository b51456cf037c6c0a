"""Where pictures go and what they look like: colours that everybody can tell apart, and small files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"

# Okabe and Ito's palette, safe for every kind of colour vision.
BLUE, ORANGE, GREEN, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#595959"
PALETTE = 96
"""Colours in a file: as good as all of them for drawings, and a third of the size."""


def blank(width: float, height: float) -> Figure:
    """An empty figure, drawn without a screen."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 10.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.labelcolor": "#222222",
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.titlesize": 12,
            "xtick.color": GREY,
            "ytick.color": GREY,
            "legend.frameon": False,
        }
    )
    made: Figure = pyplot.figure(figsize=(width, height), layout="constrained")
    return made


def close(figure: Figure) -> None:
    """Let go of a figure that is not saved by ``save``."""
    from matplotlib import pyplot

    pyplot.close(figure)


def save(figure: Figure, name: str, folder: Path = OUT, *, dots: int = 110, colours: int = PALETTE) -> Path:
    """Write ``name`` as a PNG of so many dots an inch, and close the figure."""
    from matplotlib import pyplot
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    whole = BytesIO()
    figure.savefig(whole, dpi=dots, facecolor="white")
    pyplot.close(figure)
    Image.open(whole).convert("RGB").quantize(colours).save(path, optimize=True)
    return path
