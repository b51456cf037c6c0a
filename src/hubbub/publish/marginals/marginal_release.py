"""Marginals that were published: each with its labels and error bars, all in agreement, free to use again."""

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.release import CONFIDENCE
from hubbub.parameters import Real, probability, rational
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.consistency import nonnegative_residuals
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.marginals import Marginals, PreparedMarginals, cell_variances, from_parts
from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.render import write_terms
from hubbub.publish.marginals.residual import along, contrast
from hubbub.publish.marginals.table_release import TableRelease
from hubbub.publish.release.published import Estimate
from hubbub.publish.run import ACCOUNT
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import Contribution


def run_table(
    records: Any,
    domain: Domain,
    strategy: Marginals,
    *,
    epsilon: Real,
    delta: Real = 0,
    contribution: Contribution | None = None,
    meter: Meter | None = None,
    account: str = ACCOUNT,
) -> "MarginalRelease":
    """Publish marginals of a table: codes in rows and columns, ``Records``, or counts from an engine.

    ``Contribution(total=m)`` for m rows a unit. Without a ``meter`` nobody keeps count.
    """
    return MarginalRelease.draw(
        records,
        domain,
        strategy,
        epsilon=epsilon,
        delta=delta,
        contribution=contribution,
        meter=meter,
        account=account,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class MarginalRelease(TableRelease[Marginals, PreparedMarginals]):
    """The release. Marginals of the same columns agree, whichever larger one they are summed up from."""

    made: Array | None = field(default=None, compare=False, repr=False)
    """Residuals after the steps; None where there were none."""
    known_total: bool = False

    @classmethod
    def _kinds(cls) -> tuple[type[Marginals], type[PreparedMarginals]]:
        return Marginals, PreparedMarginals

    @cached_property
    def residuals(self) -> dict[Axes, Array]:
        """The part that each set of columns adds to those below it."""
        flat = self.prepared.coefficients(self.noisy) if self.made is None else self.made
        return dict(self.prepared.layer.blocks(flat))

    def marginal(self, *names: str) -> Marginal:
        """The table of these columns, in this order."""
        marginal, order = self._places(names)
        values = from_parts(marginal, self.domain.shape, self._below(marginal)).transpose(order)
        spread = self._deviations(marginal)
        return Marginal(
            axes=tuple(self.domain.axis(name) for name in names),
            values=values,
            deviation=None if spread is None else spread.transpose(order),
            why_no_interval=self.why_no_interval,
            terms=write_terms(self),
        )

    def range(self, *, confidence: float = CONFIDENCE, **named: Any) -> Estimate:
        """Estimate the count between labels, both included: ``range(age=(18, 65),
        ward="surgery")``, with the exact error.
        """
        share = float(probability("confidence", confidence))
        marginal, _ = self._places(tuple(named))
        box = self.domain.box(named)
        weights = []
        for place in marginal:
            weights.append(contrast(self.domain.shape[place]).inverse[box[place]].sum(axis=0))
        value = variance = 0.0
        spread = self._spread()
        for one, part in self._below(marginal).items():
            picked = [
                weight[1:] if place in one else weight[:1] for place, weight in zip(marginal, weights, strict=True)
            ]
            stacked = part.reshape([len(weight) for weight in picked])
            value += float(along(stacked, [weight[np.newaxis] for weight in picked]).item())
            variance += spread[one] * math.prod(float(weight @ weight) for weight in picked)
        if self.why_no_interval is not None:
            why = self.why_no_interval
            return Estimate(value=value, deviation=None, low=None, high=None, confidence=share, why_no_interval=why)
        margin = math.sqrt(variance) * NormalDist().inv_cdf((1 + share) / 2)
        return Estimate(
            value=value, deviation=math.sqrt(variance), low=value - margin, high=value + margin, confidence=share
        )

    @property
    def why_no_interval(self) -> str | None:
        data_dependent = [step for step in self.steps if not step.startswith("with the given total")]
        if not data_dependent:
            return None
        return f"The marginals were made {', '.join(data_dependent)}, so that errors depend on the data."

    def with_total(self, total: Real) -> "MarginalRelease":
        """With a number of rows that is public anyway: exact from now on, and error bars stay, a little smaller.

        The noise of the total is independent of all other noise, so nothing else changes.
        """
        exact = float(rational("total", total))
        if any(step == "non-negative" for step in self.steps):
            raise ParameterError("with_total", "called before nonnegative, which keeps the total", self.steps)
        flat = self._flat()
        flat[0] = exact
        return replace(self, made=flat, steps=(*self.steps, f"with the given total {exact:g}"), known_total=True)

    def nonnegative(self, *, rounds: int = 200, tolerance: float = 0.5) -> "MarginalRelease":
        """The nearest marginals that agree and are not negative, in the metric of the noise.

        Nearest in that metric means never further from the truth than before. Counts below zero by ``tolerance`` are
        let pass, and it stops after so many ``rounds`` in any case.
        """
        found = nonnegative_residuals(
            self.prepared.workload,
            self.domain.shape,
            self.residuals,
            self._spread(),
            rounds=rounds,
            tolerance=tolerance,
        )
        return replace(
            self,
            made=np.concatenate([found[one].reshape(-1) for one in self.prepared.layer.sets]),
            steps=(*self.steps, "non-negative"),
        )

    def _flat(self) -> Array:
        return np.concatenate([part.reshape(-1) for part in self.residuals.values()])

    def _spread(self) -> dict[Axes, float]:
        spread = self.prepared.spread()
        return spread | {(): 0.0} if self.known_total else spread

    def _below(self, marginal: Axes) -> dict[Axes, Array]:
        parts = itertools.chain.from_iterable(
            itertools.combinations(marginal, length) for length in range(len(marginal) + 1)
        )
        return {one: self.residuals[one] for one in parts if one in self.residuals}

    def _deviations(self, marginal: Axes) -> Array | None:
        if self.why_no_interval is not None:
            return None
        spreads = [contrast(self.domain.shape[axis]).spread for axis in marginal]
        return np.sqrt(cell_variances(marginal, self._spread(), spreads))

    def _places(self, names: tuple[str, ...]) -> tuple[Axes, tuple[int, ...]]:
        all_names = [axis.name for axis in self.domain.axes]
        places = [all_names.index(self.domain.axis(name).name) for name in names]
        if len(set(places)) != len(places) or not any(set(places) <= set(one) for one in self.prepared.workload):
            shown = ", ".join("×".join(one) for one in self.names[:4]) + (" …" if len(self.names) > 4 else "")
            raise ParameterError("marginal", f"different columns of a published marginal ({shown})", names)
        rising = tuple(sorted(places))
        return rising, tuple(rising.index(place) for place in places)
