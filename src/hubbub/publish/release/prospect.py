"""The cost and the error of a publication, before anything is paid or read. Free."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.errors import HubbubError
from hubbub.gate.release import CONFIDENCE
from hubbub.privacy.affordable import tell_price, tell_room
from hubbub.privacy.charge import Charge
from hubbub.privacy.ways import Payer
from hubbub.publish import tags
from hubbub.publish.domain import Domain
from hubbub.publish.marginals import table_strategy as tables
from hubbub.publish.release import spread
from hubbub.publish.strategies.strategy import Prepared, Strategy
from hubbub.publish.terms import describe_contribution
from hubbub.query.answer.printable import clean

_MOST_MARGINALS = 12
_MOST_CELLS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """All of it as a dictionary (``to_dict``), as text (``str``) or as HTML in a notebook."""

    strategy: Strategy
    prepared: Prepared
    domain: Domain
    account: str
    cost: Charge
    payer: Payer
    """Whoever asks, with the room in every balance that it counts against."""
    bought: Sequence[tuple[str, Any]] = ()
    """Limits that whoever asks has bought, or been given, before, with their values."""
    to_buy: Sequence[tuple[str, float]] = ()
    """Limits that would be bought first, each with its ε: what is said of errors is then for a limit of 1."""

    @property
    def fits(self) -> bool:
        """True if at least the cost is left."""
        return self.payer.room.fits(self.cost)

    @cached_property
    def curve(self) -> list[tuple[int, float]] | None:
        """Cells in a range, and the root mean square error of ranges of that size; None where it depends on data."""
        return None if self.marginals is not None else spread.by_length(self.prepared)

    @cached_property
    def marginals(self) -> list[tuple[tuple[str, ...], int, float]] | None:
        """Each marginal that would be published: its columns, its cells, and the root mean square error of a cell; None
        for strategies that publish cells."""
        return tables.deviations(self.prepared, self.domain)

    def range(self, named: Mapping[str, Any], *, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """The standard deviation that a range would have, and the margin of its interval; None where neither is
        public."""
        if self.domain.size > _MOST_CELLS:
            return None
        query = np.zeros(self.domain.shape)
        query[self.domain.box(named)] = 1
        try:
            return spread.of(self.prepared, query, beta=1 - confidence)
        except HubbubError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        terms = self.prepared.terms
        one = terms.contribution
        return {
            "strategy": tags.to_json(self.strategy),
            "axes": {axis.name: len(axis.labels) for axis in self.domain.axes},
            "cells": self.domain.size,
            "epsilon": float(terms.epsilon),
            "delta": float(terms.delta),
            "contribution": {"cells": one.cells, "each": one.each, "total": one.total},
            "neighbors": one.neighbors.value,
            "measurements": [
                {"numbers": found.layer.size, "noise": type(found.mechanism).__name__}
                for found in self.prepared.measurements
            ],
            "error": None if self.curve is None else [{"cells": many, "rmse": rmse} for many, rmse in self.curve],
            "marginals": None
            if self.marginals is None
            else [{"columns": list(names), "cells": many, "rmse": rmse} for names, many, rmse in self.marginals],
            "bought": [{"what": what, "value": value} for what, value in self.bought],
            "to_buy": [{"what": what, "epsilon": epsilon} for what, epsilon in self.to_buy],
            "account": self.account,
            "cost": {
                "loss_units": self.cost.loss,
                "failure_units": self.cost.failure,
                "pure_units": self.cost.pure,
                "text": tell_price(self.payer, self.cost, epsilon=terms.epsilon + self._to_buy),
            },
            "left": tell_room(self.payer, delta=terms.delta),
            "left_afterwards": tell_room(self.payer.after(self.cost), delta=terms.delta),
            "fits": self.fits,
        }

    @property
    def _to_buy(self) -> Fraction:
        return sum((Fraction(share) for _, share in self.to_buy), Fraction(0))

    def __str__(self) -> str:
        told = self.to_dict()
        axes = told["axes"]
        lines = [
            f"strategy    {self.strategy.name}: "
            + ", ".join(f"{found['numbers']:,} numbers with {found['noise']} noise" for found in _few(told)),
            f"cells       {told['cells']:,}: " + " × ".join(f"{clean(name)} ({many:,})" for name, many in axes.items()),
            f"unit        at most {describe_contribution(self.prepared.terms.contribution)} "
            f"({told['neighbors']} neighbours)",
            *(f"bought      {clean(found['what'])}: {found['value']}" for found in told["bought"]),
            *(f"to buy      {clean(found['what'])}, with ε = {found['epsilon']:.3g}" for found in told["to_buy"]),
        ]
        if self.marginals is not None:
            lines += [
                f"error       {clean(' × '.join(names))}, {many:,} cells: ± {rmse:,.4g} a cell (rms)"
                for names, many, rmse in self.marginals[:_MOST_MARGINALS]
            ]
            more = len(self.marginals) - _MOST_MARGINALS
            lines += [f"            … {more:,} more marginals"] if more > 0 else []
        elif self.curve is None:
            lines.append(f"error       {getattr(self.prepared, 'foretold', 'depends on the data, and is not told')}")
        else:
            lines += [f"error       {many:>12,} cells: ± {rmse:,.4g} (rms)" for many, rmse in _some(self.curve)]
        then = f"{told['left_afterwards']} afterwards" if told["fits"] else "does not fit"
        return "\n".join([*lines, f"price       {told['cost']['text']} of {told['left']} left; {then}"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _few(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Many layers as one line."""
    kinds: dict[str, int] = {}
    for one in told["measurements"]:
        kinds[one["noise"]] = kinds.get(one["noise"], 0) + one["numbers"]
    return [{"noise": noise, "numbers": many} for noise, many in kinds.items()]


def _some(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most six points, the first and the last among them."""
    step = max(1, math.ceil((len(curve) - 1) / 5))
    chosen = list(curve[::step])
    return chosen if chosen[-1] == curve[-1] else [*chosen, curve[-1]]
