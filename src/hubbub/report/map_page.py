"""A map as one page that works without a network: its style, its program and its numbers are all inside.

Other people's words reach the page as JSON that cannot end its script, and are put on it as text. A content policy
names the program by its hash, so that nothing else runs and nothing is fetched.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path as File
from typing import Any

import numpy as np

from hubbub.gate.release import CONFIDENCE, note_age
from hubbub.publish.release.map_margins import Path
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.layer import Array
from hubbub.report.map_data import CellMap, FlowMap, Zones
from hubbub.report.map_geojson import claim
from hubbub.report.map_outlines import Line
from hubbub.report.map_scale import scale_for

_PARTS = ("view", "colours", "cells", "flows", "start")
_HERE = File(__file__).parent / "map"


def write(published: Published, shown: CellMap | FlowMap, path: Path, *, lines: Sequence[Line], title: str) -> None:
    """The file."""
    File(path).write_text(page(published, shown, lines=lines, title=title), encoding="utf-8")


def page(published: Published, shown: CellMap | FlowMap, *, lines: Sequence[Line] = (), title: str = "Map") -> str:
    """The whole page."""
    program = "\n".join(
        ['"use strict";', "(() => {", *((_HERE / f"{part}.js").read_text(encoding="utf-8") for part in _PARTS), "})();"]
    )
    style = (_HERE / "map.css").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'"
    told = _common(published, shown, lines, title) | (_cells(shown) if isinstance(shown, CellMap) else _flows(shown))
    body = (_HERE / "body.html").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style></head>\n'
        f"<body>{body}"
        f'<script type="application/json" id="numbers">{_inert(told)}</script>\n'
        f"<script>{program}</script></body></html>\n"
    )


def _inert(told: Any) -> str:
    """JSON in which no tag can begin or end."""
    text = json.dumps(told, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _common(published: Published, shown: CellMap | FlowMap, lines: Sequence[Line], title: str) -> dict[str, Any]:
    plane = shown.plane
    return {
        "title": title,
        "claim": claim(published),
        "source": f"{published.strategy.name}, {published.price}, entry {published.entry} of account "
        f"“{published.account}”{note_age(published.stored, before=', ')}"
        + (f"; afterwards made {', '.join(published.steps)}, which costs nothing" if published.steps else ""),
        "confidence": f"{CONFIDENCE:.0%}",
        "why": shown.why_no_interval,
        "x": plane.x,
        "y": plane.y,
        "bounds": plane.bounds,
        "aspect": aspect(shown),
        "lines": [[round(one, 6) for point in line for one in point] for line in lines],
    }


def aspect(shown: CellMap | FlowMap) -> float:
    """Return the length of a unit of y over that of x: by the latitude, or so that other measures fill a square."""
    west, south, east, north = shown.plane.bounds
    if shown.plane.degrees:
        return float(1 / max(0.1, np.cos(np.radians((south + north) / 2))))
    ratio = (east - west) / (north - south)
    return float(ratio) if not 0.2 <= ratio <= 5 else 1.0


def _cells(shown: CellMap) -> dict[str, Any]:
    around = shown.margins
    scale = scale_for(shown.counts / shown.sizes, shown.sizes)
    return {
        "kind": "cells",
        "boxes": _pack(shown.boxes) if shown.partition else None,
        "edges": [_edges(shown, 0), _edges(shown, 1)],
        "partition": shown.partition,
        "moments": list(shown.moments),
        "movedBy": shown.moved_by,
        "counts": _pack(shown.counts),
        "margins": None if around is None else _margins(around),
        "scale": scale.name,
        "top": scale.top,
        "middle": scale.middle,
    }


def _edges(shown: CellMap, axis: int) -> list[float]:
    """Of the grid along x or y: where cells begin, and where the last one ends."""
    west, south, east, north = shown.plane.bounds
    low, high = (west, east) if axis == 0 else (south, north)
    return [low, high, int(shown.boxes[:, 2 * axis + 1].max())]


def _flows(shown: FlowMap) -> dict[str, Any]:
    around = shown.margins
    return {
        "kind": "flows",
        "origins": _zones(shown.origins),
        "destinations": _zones(shown.destinations),
        "counts": _pack(shown.counts),
        "margins": None if around is None else _margins(around),
        "leaving": None if shown.leaving is None else _margins(shown.leaving),
        "arriving": None if shown.arriving is None else _margins(shown.arriving),
        "chosen": shown.chosen,
    }


def _zones(zones: Zones) -> dict[str, Any]:
    return {
        "name": zones.name,
        "points": zones.shapes.shape[1] == 2,
        "shapes": [[round(one, 9) for one in row] for row in zones.shapes.tolist()],
        "names": zones.names,
        "grid": zones.grid,
    }


def _margins(around: Array) -> Any:
    """One number where all are the same."""
    return float(around.flat[0]) if np.ptp(around) == 0 else _pack(around)


def _pack(values: Array) -> dict[str, str]:
    """Four bytes for each number; seven digits of those that are not whole."""
    whole = bool(np.all(values == np.rint(values))) and bool(np.all(np.abs(values) < 2**31))
    kind = "<i4" if whole else "<f4"
    return {"kind": "i" if whole else "f", "data": base64.b64encode(values.astype(kind).tobytes()).decode()}
