"""Lines of a GeoJSON file that a map is drawn under, such as borders and rivers. None are bundled."""

import json
import math
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

from hubbub.errors import ParameterError
from hubbub.publish.release.map_margins import Path

_MOST_POINTS = 400_000
_DEEPEST = 8

Line = list[tuple[float, float]]


def lines_of(path: Path) -> list[Line]:
    """All lines and the edges of all polygons, whatever else is in the file."""
    try:
        told = json.loads(File(path).read_text(encoding="utf-8"))
        found = list(_lines(told, 0))
    except OSError as problem:
        raise ParameterError("outlines", f"a file that can be read ({problem.strerror})", str(path)) from None
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise ParameterError("outlines", "a GeoJSON file", str(path)) from None
    if not found:
        raise ParameterError("outlines", "a GeoJSON file with lines or polygons", str(path))
    if (points := sum(map(len, found))) > _MOST_POINTS:
        raise ParameterError("outlines", f"at most {_MOST_POINTS:,} points; simplify it first", points)
    return found


def _lines(told: Any, depth: int) -> Iterator[Line]:
    if depth > _DEEPEST or not isinstance(told, dict):
        raise ValueError("not GeoJSON")
    match told:
        case {"type": "FeatureCollection", "features": [*features]}:
            for one in features:
                yield from _lines(one, depth + 1)
        case {"type": "Feature", "geometry": None}:
            return
        case {"type": "Feature", "geometry": geometry}:
            yield from _lines(geometry, depth + 1)
        case {"type": "GeometryCollection", "geometries": [*geometries]}:
            for one in geometries:
                yield from _lines(one, depth + 1)
        case {"type": "LineString", "coordinates": points}:
            yield _line(points)
        case {"type": "Polygon" | "MultiLineString", "coordinates": [*rings]}:
            yield from map(_line, rings)
        case {"type": "MultiPolygon", "coordinates": [*polygons]}:
            yield from (_line(ring) for polygon in polygons for ring in polygon)
        case {"type": "Point" | "MultiPoint"}:
            return
        case _:
            raise ValueError("not GeoJSON")


def _line(points: Any) -> Line:
    found = [(float(point[0]), float(point[1])) for point in points]
    if not all(math.isfinite(one) for point in found for one in point):
        raise ValueError("not a place")
    return found
