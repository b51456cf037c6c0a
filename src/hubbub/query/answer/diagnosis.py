"""The result of a diagnosis: how many units each limit and bound cuts off, with error bars. All of it is public."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar

from hubbub.gate.release import note_age
from hubbub.query.answer.diagnose import Affected, Cut, Diagnostic
from hubbub.query.answer.printable import clean
from hubbub.query.answer.stored import CONFIDENCE, combine
from hubbub.query.answer.terms import write_price
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber

_UNSEEN = "Within the noise, none: keep it as it is, or pay more to see better."


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFinding:
    """A number of units that something is cut off of."""

    cut: Cut
    what: str
    units: int
    low: int
    high: int
    """Where the exact number lies with 95% confidence."""
    share: float | None
    """Of all units; None where these are too few to tell."""
    share_low: float | None
    share_high: float | None
    remedy: str
    """What would let these units count with all they have; nothing for all units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All units of a question first, then one line for everything that can cut some of them off."""

    plans: tuple[Plan, ...]
    """How the numbers were measured."""
    rows: tuple[DiagnosisFinding, ...]
    epsilon: Fraction
    delta: Fraction
    price: Fraction
    """The whole ε, with that of the facts that were bought for it."""
    account: str
    entry: int
    """The charge in the ledger that paid for it."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    confidence: ClassVar[float] = CONFIDENCE

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary a line."""
        return [
            {
                "cut": str(one.cut),
                "what": one.what,
                "units": one.units,
                "units_low": one.low,
                "units_high": one.high,
                "share": one.share,
                "share_low": one.share_low,
                "share_high": one.share_high,
                "remedy": one.remedy,
            }
            for one in self.rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "rows": self.to_dicts(),
            "confidence": self.confidence,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "price": str(self.price),
            "account": self.account,
            "entry": self.entry,
            "stored": None if self.stored is None else self.stored.isoformat(),
        }

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        table = [("units", "number", "share"), *((clean(one.what), *_cells(one)) for one in self.rows)]
        widths = [max(len(row[place]) for row in table) for place in range(3)]
        lines = [
            f"{what.ljust(widths[0])}  {units.rjust(widths[1])}  {share.rjust(widths[2])}".rstrip()
            for what, units, share in table
        ]
        lines.insert(1, "  ".join("─" * width for width in widths))
        advice = [f"{clean(one.what)}: {one.remedy}" for one in self.rows if one.remedy]
        return "\n".join([*lines, "", *advice, "", self._footer()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in ("units", "number", "share", "remedy"))
        cells = [(clean(one.what), *_cells(one), one.remedy) for one in self.rows]
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        foot = html.escape(self._footer())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{foot}</p>"

    def _footer(self) -> str:
        paid = f"entry {self.entry} of account {clean(self.account)!r}{note_age(self.stored, fresh='fresh')}"
        return f"± 95% · {write_price(self.price, self.delta)} · {paid}"


def _cells(one: DiagnosisFinding) -> tuple[str, str]:
    units = f"{one.units:,} ± {max(one.units - one.low, one.high - one.units):,}"
    if one.cut is Cut.NOTHING:
        return units, ""
    if one.share is None or one.share_low is None or one.share_high is None:
        return units, "–"
    margin = max(one.share - one.share_low, one.share_high - one.share)
    return units, f"{100 * one.share:.3g}% ± {100 * margin:.2g}%"


def diagnosis_of(
    diagnostics: Sequence[Diagnostic],
    plans: Sequence[Plan],
    drawn: Sequence[Sequence[Sequence[int]]],
    *,
    entry: int,
    stored: datetime | None = None,
) -> Diagnosis:
    """Noisy numbers beside what they are about. A share is a ratio of two of them: its interval is the box of both."""
    affected = [number for one in diagnostics for number in one.numbers]
    pairs = list(zip(plans, drawn, strict=True))
    alone, boxed = (
        [number for plan, noisy in pairs for number in combine(plan, noisy, confidence=confidence)[0]]
        for confidence in (CONFIDENCE, (1 + CONFIDENCE) / 2)
    )
    every = boxed[0]
    rows = [_finding(*one, every) for one in zip(affected, alone, boxed, strict=True)]
    return Diagnosis(
        plans=tuple(plans),
        rows=tuple(rows),
        epsilon=plans[0].epsilon,
        price=plans[0].price,
        delta=plans[0].delta,
        account=plans[0].policy.account,
        entry=entry,
        stored=stored,
    )


def _finding(affected: Affected, alone: NoisyNumber, boxed: NoisyNumber, every: NoisyNumber) -> DiagnosisFinding:
    units, low, high = (_whole(one) for one in (alone.value, alone.low, alone.high))
    total, least, most = (_whole(one) for one in (every.value, every.low, every.high))
    share = share_low = share_high = None
    if affected.cut is Cut.NOTHING:
        share = share_low = share_high = 1.0
    elif least >= 1:
        share = _within(units / total)
        share_low, share_high = _within(_whole(boxed.low) / most), _within(_whole(boxed.high) / least)
    return DiagnosisFinding(
        cut=affected.cut,
        what=affected.what,
        units=units,
        low=low,
        high=high,
        share=share,
        share_low=share_low,
        share_high=share_high,
        remedy=affected.remedy if affected.cut is Cut.NOTHING or low > 0 else _UNSEEN,
    )


def _whole(value: Any) -> int:
    assert isinstance(value, int)
    return value


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))
