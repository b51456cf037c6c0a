"""Published marginals for people: what there is, how far it is off, and the price. Names are other people's words."""

import math
from typing import TYPE_CHECKING

from hubbub.query.shown import clean
from hubbub.release import served_again

if TYPE_CHECKING:
    from hubbub.publish.tables import Tables

_MOST = 12


def told(release: "Tables") -> str:
    """A line for each of the first marginals, and one about the price."""
    prepared, axes, lines = release.prepared, release.domain.axes, []
    for places in prepared.workload[:_MOST]:
        names = " × ".join(clean(axes[place].name) for place in places)
        cells = math.prod(len(axes[place].labels) for place in places)
        off = "" if release.steps else f": ± {math.sqrt(prepared.cell_variance(places)):,.4g} a cell (rms)"
        lines.append(f"{names}, {cells:,} cells{off}")
    more = len(prepared.workload) - _MOST
    steps = f" · made {', '.join(release.steps)}" if release.steps else ""
    return "\n".join(
        [
            *lines,
            *([f"… {more:,} more marginals"] if more > 0 else []),
            "",
            f"{release.strategy.name}{steps} · {release.drawn.price} · entry {release.entry} of account "
            f"{clean(release.account)!r}{served_again(release.stored)}",
        ]
    )
