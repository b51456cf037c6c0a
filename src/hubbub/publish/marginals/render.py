"""Published marginals for people: what there is, how far it is off, and the price. Names are other people's words."""

import html
import math
from typing import TYPE_CHECKING, Any

from hubbub.gate.release import note_age
from hubbub.publish.terms import write_limits
from hubbub.query.answer.printable import clean

if TYPE_CHECKING:
    from hubbub.publish.marginals.table_release import TableRelease

_MOST = 12


def render_tables(release: "TableRelease[Any, Any]") -> str:
    """A line for each of the first marginals, how to look at one, and a line about the price."""
    lines, more = _list_marginals(release)
    return "\n".join([*lines, *more, "", write_terms(release)])


def tables_as_html(release: "TableRelease[Any, Any]") -> str:
    """The same as HTML."""
    lines, more = _list_marginals(release)
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" + "".join(f"<p>{html.escape(line)}</p>" for line in [*more, write_terms(release)])


def _list_marginals(release: "TableRelease[Any, Any]") -> tuple[list[str], list[str]]:
    prepared, axes, lines = release.prepared, release.domain.axes, []
    for places in prepared.workload[:_MOST]:
        names = " × ".join(clean(axes[place].name) for place in places)
        cells = math.prod(len(axes[place].labels) for place in places)
        off = "" if release.steps else f": ± {math.sqrt(prepared.cell_variance(places)):,.4g} a cell (rms)"
        lines.append(f"{names}, {cells:,} cells{off}")
    left = len(prepared.workload) - _MOST
    named = ", ".join(f'"{clean(axes[place].name)}"' for place in prepared.workload[0])
    return lines, [*([f"… {left:,} more marginals"] if left > 0 else []), f"Look at one: release.marginal({named})"]


def write_terms(release: "TableRelease[Any, Any]") -> str:
    """Say in a line what was left out of a unit, the price, and whether the release is fresh."""
    steps = f" · made {', '.join(release.steps)}" if release.steps else ""
    limits, price = write_limits(release.prepared.terms.contribution), release.as_published.price
    return (
        f"{release.strategy.name}{steps} · {limits} · {price} · "
        f"entry {release.entry} of account {clean(release.account)!r}{note_age(release.stored, fresh='fresh')}"
    )
