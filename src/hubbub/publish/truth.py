"""The exact cells of data that was generated, from a file: what true errors are measured against.

A row a cell, with a column for each axis and one that is called ``count``; cells that have no row are empty. Labels
are compared as texts, bins by the interval that they are shown as.
"""

import csv
import os
from pathlib import Path

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.domain import Domain
from hubbub.publish.layer import Array

COUNT = "count"


def read_truth(path: str | os.PathLike[str], domain: Domain) -> Array:
    """The cells in the shape of the domain."""
    file = Path(path)
    wanted = {*(axis.name for axis in domain.axes), COUNT}
    places = [{str(label): place for place, label in enumerate(axis.labels)} for axis in domain.axes]
    cells = np.zeros(domain.shape, dtype=np.int64)
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            rows = csv.DictReader(opened)
            if set(rows.fieldnames or ()) != wanted:
                raise ParameterError(
                    "truth", f"a CSV file with the columns {', '.join(sorted(wanted))}", rows.fieldnames
                )
            for row in rows:
                at = tuple(place[row[axis.name]] for axis, place in zip(domain.axes, places, strict=True))
                cells[at] += int(row[COUNT])
    except OSError as problem:
        raise ParameterError("truth", f"a file that can be read ({problem.strerror})", str(file)) from None
    except (KeyError, ValueError) as problem:
        if isinstance(problem, ParameterError):
            raise
        raise ParameterError("truth", "cells of the domain with whole counts", str(problem)) from None
    return cells
