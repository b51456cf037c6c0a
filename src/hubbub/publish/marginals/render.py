"""Published marginals for people: what there is, how far it is off, and the price. Names are other people's words."""

import math
from typing import TYPE_CHECKING

from hubbub.gate.release import note_age
from hubbub.publish.terms import write_limits
from hubbub.query.answer.printable import clean

if TYPE_CHECKING:
    from hubbub.publish.marginals.table_strategy import Tables

_MOST = 12


def render_tables(release: "Tables") -> str:
    """A line for each of the first marginals, and one about the price."""
    prepared, axes, lines = release.prepared, release.domain.axes, []
    for places in prepared.workload[:_MOST]:
        names = " × ".join(clean(axes[place].name) for place in places)
        cells = math.prod(len(axes[place].labels) for place in places)
        off = "" if release.steps else f": ± {math.sqrt(prepared.cell_variance(places)):,.4g} a cell (rms)"
        lines.append(f"{names}, {cells:,} cells{off}")
    more = len(prepared.workload) - _MOST
    steps = f" · made {', '.join(release.steps)}" if release.steps else ""
    limits, price = write_limits(prepared.terms.contribution), release.as_published.price
    return "\n".join(
        [
            *lines,
            *([f"… {more:,} more marginals"] if more > 0 else []),
            "",
            f"{release.strategy.name}{steps} · {limits} · {price} · "
            f"entry {release.entry} of account {clean(release.account)!r}{note_age(release.stored, fresh='fresh')}",
        ]
    )
