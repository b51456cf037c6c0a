"""One marginal: estimated counts with their errors, to be looked at, drawn, or taken as a data frame."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from hubbub.gate.pictures import find_drawer
from hubbub.gate.release import CONFIDENCE
from hubbub.parameters import probability
from hubbub.publish.domain import Axis
from hubbub.publish.inference.projection import onto_simplex
from hubbub.publish.inference.whole_numbers import whole_with_total
from hubbub.publish.release.render import lay_out_html, lay_out_text, list_cells, shown_columns
from hubbub.publish.strategies.layer import Array
from hubbub.query.answer.columns import Shown, to_arrow, to_pandas, to_polars


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Marginal:
    """One table: estimated counts, a dimension an axis."""

    axes: tuple[Axis, ...]
    values: Array
    deviation: Array | None
    """The standard deviation of every cell, exact and public."""
    why_no_interval: str | None = None
    terms: str = field(default="", compare=False)
    """The line of the release that it is from: what was left out, the price, and whether it is fresh."""

    plotter: ClassVar[Callable[..., Any] | None] = None
    """Set by ``hubbub.report``, which is loaded when it is first needed."""

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Array, Array] | None:
        """Low and high ends, each cell for itself; approximate for Laplace noise, where it is a sum of many."""
        if self.deviation is None:
            return None
        margin = self.deviation * NormalDist().inv_cdf((1 + float(probability("confidence", confidence))) / 2)
        return self.values - margin, self.values + margin

    def nonnegative(self) -> "Marginal":
        """The nearest table without negative counts and with the same total; others of the release stay as they are."""
        made = onto_simplex(self.values, total=max(0.0, float(self.values.sum())))
        return self._change(made, "non-negative")

    def whole(self) -> "Marginal":
        """Whole counts, each moved by less than 1, that keep the total as near as whole numbers can."""
        return self._change(whole_with_total(self.values), "whole")

    def rows(self, confidence: float = CONFIDENCE) -> list[dict[str, Any]]:
        """A row a cell: its labels, ``value``, and ``low`` and ``high`` where there are intervals."""
        ends = self.interval(confidence)
        found = []
        for place in np.ndindex(*self.values.shape):
            row = {axis.name: axis.labels[at] for axis, at in zip(self.axes, place, strict=True)}
            row["value"] = float(self.values[place])
            if ends is not None:
                row |= {"low": float(ends[0][place]), "high": float(ends[1][place])}
            found.append(row)
        return found

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row a cell (needs pandas)."""
        return to_pandas(self._columns())

    def to_polars(self) -> Any:
        """Return a polars DataFrame with a row a cell (needs polars)."""
        return to_polars(self._columns())

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with a row a cell (needs pyarrow)."""
        return to_arrow(self._columns())

    def _columns(self) -> list[Shown]:
        return shown_columns(self.axes, self.values, self.deviation)

    def plot(self, **options: Any) -> Any:
        """Draw bars with whiskers, or a heat map of two columns (needs ``pip install "hubbub[plot]"``)."""
        return find_drawer(type(self), "plotter")(self, **options)

    def __repr__(self) -> str:
        header, body, more = list_cells(self.axes, self.values, self.deviation)
        return "\n".join([*lay_out_text(header, body), *more, "", *([self.terms] if self.terms else [])]).rstrip("\n")

    def _repr_html_(self) -> str:
        header, body, more = list_cells(self.axes, self.values, self.deviation)
        return lay_out_html(header, body, [*more, *([self.terms] if self.terms else [])])

    def _change(self, values: Array, step: str) -> "Marginal":
        why = self.why_no_interval or f"The table was made {step}, so that errors depend on the data."
        return replace(self, values=values, deviation=None, why_no_interval=why)
