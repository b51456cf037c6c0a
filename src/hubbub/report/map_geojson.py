"""A map for other programs: GeoJSON, with the price and the claim."""

import json
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

from hubbub.gate.release import CONFIDENCE
from hubbub.ledger.entry import ratio
from hubbub.publish.release.map_margins import Path
from hubbub.publish.release.published import Published
from hubbub.publish.terms import describe_contribution
from hubbub.query.answer.printable import clean
from hubbub.report.map_data import CellMap, FlowMap


def write(published: Published, shown: CellMap | FlowMap, path: Path) -> None:
    """A polygon for each cell or leaf at each moment, or a line for each flow between two zones."""
    features = _cells(shown) if isinstance(shown, CellMap) else _flows(shown)
    why = shown.why_no_interval
    told = {
        "type": "FeatureCollection",
        "properties": {
            "epsilon": float(published.epsilon),
            "epsilon_exactly": ratio(published.epsilon),
            "delta": float(published.delta),
            "claim": claim(published),
            "strategy": published.strategy.name,
            "account": clean(published.account),
            "entry": published.entry,
            "steps": list(published.steps),
            "x": shown.plane.x,
            "y": shown.plane.y,
        }
        | ({"confidence": CONFIDENCE} if why is None else {"why_no_interval": why}),
        "features": list(features),
    }
    File(path).write_text(json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def claim(published: Published) -> str:
    """State the privacy guarantee in a sentence."""
    one = published.prepared.terms.contribution
    held = describe_contribution(one)
    return f"{published.price}, for everything that one unit adds: at most {held} ({one.neighbors.value} neighbours)."


def _cells(shown: CellMap) -> Iterator[dict[str, Any]]:
    shapes = shown.zones.shapes.tolist()
    for moment, name in enumerate(shown.moments):
        counts = shown.counts[moment].tolist()
        around = None if shown.margins is None else shown.margins[moment].tolist()
        for place, (west, south, east, north) in enumerate(shapes):
            ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
            told = _properties_of(counts[place], None if around is None else around[place])
            if shown.moved_by is not None:
                told[shown.moved_by if shown.moved_by not in told else f"{shown.moved_by}_"] = name
            yield {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, "properties": told}


def _flows(shown: FlowMap) -> Iterator[dict[str, Any]]:
    starts, ends = shown.origins.centres.tolist(), shown.destinations.centres.tolist()
    for origin, start in enumerate(starts):
        for destination, end in enumerate(ends):
            around = None if shown.margins is None else float(shown.margins[origin, destination])
            told = _properties_of(float(shown.counts[origin, destination]), around)
            for side, zones, place in (("from", shown.origins, origin), ("to", shown.destinations, destination)):
                told[side] = place if zones.names is None else zones.names[place]
            line = {"type": "LineString", "coordinates": [start, end]}
            yield {"type": "Feature", "geometry": line, "properties": told}


def _properties_of(count: float, margin: float | None) -> dict[str, Any]:
    if margin is None:
        return {"count": count}
    return {"count": count, "low": count - margin, "high": count + margin}
