"""Limits and bounds that are advised, out of noisy histograms of how much people have.

For each limit that one could declare there are two errors of a count or sum: the noise, which grows with the limit, and
what the limit drops. Their squares add up to the square of the whole error, and the limit at which that is the least is
advised. Everything here is post-processing of what was released.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from hubbub.gate.release import note_age
from hubbub.policy.files.toml_text import header, key
from hubbub.policy.tables import Limits
from hubbub.query.answer.printable import clean
from hubbub.query.answer.terms import write_price
from hubbub.query.missing.advising import Advised, AdvisingLook
from hubbub.query.missing.tail_model import LIMITS as FEW
from hubbub.query.missing.value_bounds import weigh_edges

_MISSED = 0.05
"""How likely noise alone looks like a person beyond ``max_total_rows``, and a bound of their number is too low."""
_SHOWN = 7
"""Limits that are shown of each kind: the one that is advised, and those around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitError:
    """A limit that one could declare, and the errors that it would give, as standard deviations."""

    limit: int
    noise: float
    """Of a count over one group, at the price that was named."""
    lost: float
    """What the limit drops: the root of its mean square, as far as noise lets it be seen."""

    @property
    def whole(self) -> float:
        """Return the whole error."""
        return math.hypot(self.noise, self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedLimit:
    """One limit, or bounds, that are advised."""

    advised: Advised
    column: str | None
    limit: int | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    errors: tuple[LimitError, ...] = ()
    beyond: int | None = None
    """Of ``max_total_rows``: at most how many people have more rows, with 95%."""

    @property
    def sentence(self) -> str:
        """Say it in words."""
        by = "" if self.column is None else f" by {clean(self.column)}"
        if self.bounds is not None:
            low, high = (f"{float(end):,g}" for end in self.bounds)
            return f"bounds of {clean(self.column or '')}: {low} … {high}"
        if self.limit is None:
            return f"{self.advised}{by}: too few people to see"
        if self.advised is Advised.TOTAL:
            return f"max_total_rows = {self.limit:,}: at most {self.beyond:,} people have more rows (95%)"
        return f"{self.advised} = {self.limit:,}{by}: the least whole error of a count"

    def compare(self, current: int) -> dict[str, Any] | None:
        """Say what another limit than the current one would do to the error of a count; None where it is the best."""
        if not self.errors:
            return None
        best = min(self.errors, key=lambda each: each.whole)
        now = next((each for each in self.errors if each.limit >= current), self.errors[-1])
        name = Advised.ROWS if self.advised is Advised.TOTAL else self.advised
        by = "" if self.column is None else f" by {self.column}"
        if best.limit == now.limit:
            said = f"{name} = {current:,}{by} has the least whole error of a count"
        else:
            said = f"{name} = {best.limit:,}{by} would make the whole error of a count least"
        sentence = f"{said}: ± {best.whole:,.3g}" + (f", and not ± {now.whole:,.3g}" if best.limit != now.limit else "")
        return {
            "limit": str(name),
            "column": self.column,
            "current": current,
            "best": best.limit,
            "error": now.whole,
            "least": best.whole,
            "sentence": sentence,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What is advised for a table, with the error that each limit would give."""

    table: str
    limits: tuple[AdvisedLimit, ...]
    price: Fraction
    """The ε of a question for which limits are the best."""
    epsilon: Fraction
    """What the looks cost."""
    account: str
    entry: int
    """The charge in the ledger that paid for it."""
    drawn: str = field(repr=False)
    """The noisy counts, as they are stored."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "table": self.table,
            "limits": [
                {
                    "advised": str(one.advised),
                    "column": one.column,
                    "limit": one.limit,
                    "bounds": None if one.bounds is None else [float(end) for end in one.bounds],
                    "beyond": one.beyond,
                    "errors": [
                        {"limit": each.limit, "noise": each.noise, "lost": each.lost, "whole": each.whole}
                        for each in one.errors
                    ],
                }
                for one in self.limits
            ],
            "toml": self.toml,
            "price": str(self.price),
            "epsilon": str(self.epsilon),
            "account": self.account,
            "entry": self.entry,
            "stored": None if self.stored is None else self.stored.isoformat(),
        }

    @property
    def toml(self) -> str:
        """Write the lines for ``hubbub.toml``; a limit of several columns is the largest of theirs, and no
        group of a person has more rows than all groups together."""
        lines = ["[limits]"]
        for advised in (Advised.GROUPS, Advised.ROWS, Advised.TOTAL):
            counts_rows = {Advised.ROWS, Advised.TOTAL} if advised is Advised.TOTAL else {advised}
            found = [one.limit for one in self.limits if one.advised in counts_rows and one.limit is not None]
            is_known = any(one.advised is advised and one.limit is not None for one in self.limits)
            lines += [f"{advised} = {max(found)}"] if is_known else []
        bounds = [one for one in self.limits if one.bounds is not None and one.column is not None]
        if bounds:
            lines += ["", header("tables", self.table, "columns")]
        for one in bounds:
            assert one.bounds is not None
            low, high = (f"{float(end):.12g}" for end in one.bounds)
            lines.append(f"{key(one.column or '')} = {{ bounds = [{low}, {high}] }}")
        return "\n".join(lines)

    def compare(self, keys: Sequence[str], limits: Limits) -> tuple[dict[str, Any], ...]:
        """Compare the limits of a policy with what is advised, for a question that groups by these columns."""
        current = {Advised.ROWS: limits.rows, Advised.GROUPS: limits.max_groups, Advised.TOTAL: limits.rows}
        among: tuple[str | None, ...] = tuple(keys) or (None,)
        wanted = [one for one in self.limits if one.bounds is None and one.column in among]
        found = [one.compare(held) for one in wanted if (held := current.get(one.advised)) is not None]
        return tuple(each for each in found if each is not None)

    def __len__(self) -> int:
        return len(self.limits)

    def __repr__(self) -> str:
        lines = [f"limits of {clean(self.table)}, for questions at ε = {float(self.price):g}", ""]
        for one in self.limits:
            lines.append(one.sentence)
            lines += [f"    {line}" for line in _table(one)]
        return "\n".join([*lines, "", *self.toml.split("\n"), "", self._footer()])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _footer(self) -> str:
        paid = f"entry {self.entry} of account {clean(self.account)!r}{note_age(self.stored, fresh='fresh')}"
        return f"{write_price(self.epsilon, Fraction(0))} · {paid}"


def _table(one: AdvisedLimit) -> Iterator[str]:
    """Write the errors of the limits around the one that is advised."""
    if not one.errors or one.limit is None:
        return
    rows = [["limit", "noise ±", "dropped ±", "whole error ±"]]
    best = min(range(len(one.errors)), key=lambda place: one.errors[place].whole)
    first = max(0, min(best - _SHOWN // 2, len(one.errors) - _SHOWN))
    for each in one.errors[first : first + _SHOWN]:
        rows.append([f"{each.limit:,}", *(f"{part:,.3g}" for part in (each.noise, each.lost, each.whole))])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def advise(
    looks: Sequence[AdvisingLook], noisy: Sequence[Sequence[int]], *, noise: Fraction, price: Fraction
) -> tuple[AdvisedLimit, ...]:
    """Return what is advised for questions at a price; ``noise`` is the ε of each histogram, as its noise shows it."""
    return tuple(_advise_one(look, counts, noise, price) for look, counts in zip(looks, noisy, strict=True))


def _advise_one(asked: AdvisingLook, noisy: Sequence[int], noise: Fraction, price: Fraction) -> AdvisedLimit:
    (fact,) = asked.look.facts
    if asked.advised is Advised.BOUNDS:
        low, high = (Fraction(end) for end in fact.read(noisy, noise=noise, rest=price)[:2])
        return AdvisedLimit(advised=asked.advised, column=asked.column, bounds=(low, high))
    weighed = weigh_edges(noisy, fact.edges, noise=noise, rest=price, step=1, tail=FEW)
    errors = [
        LimitError(limit=int(edge), noise=math.sqrt(own), lost=math.sqrt(lost))
        for edge, (own, lost) in weighed.items()
        if asked.most is None or edge <= asked.most
    ]
    if not errors:
        return AdvisedLimit(advised=asked.advised, column=asked.column)
    best = min(range(len(errors)), key=lambda place: errors[place].whole)
    if asked.advised is Advised.TOTAL:
        least = next(place for place, edge in enumerate(fact.edges) if edge >= errors[best].limit)
        place = max(least, find_last(noisy, noise))  # of few people nobody is told from noise, long before their last
        most, beyond = int(fact.edges[place]), count_beyond(noisy[place + 1 :], noise)
        return AdvisedLimit(advised=asked.advised, column=None, limit=most, errors=tuple(errors), beyond=beyond)
    chosen = errors[best].limit
    return AdvisedLimit(advised=asked.advised, column=asked.column, limit=chosen, errors=tuple(errors))


def find_last(noisy: Sequence[int], noise: Fraction) -> int:
    """Return the bin behind the last one that noise alone does not explain: nobody is seen beyond it."""
    plain = math.log(len(noisy) / (2 * _MISSED)) / float(noise)
    last = max((place for place, count in enumerate(noisy) if count > plain), default=0)
    return min(last + 1, len(noisy) - 1)


def count_beyond(noisy: Sequence[int], noise: Fraction) -> int:
    """Return at most how many people are in bins together, with 95%: by the Chernoff bound of their noise."""
    if not noisy:
        return 0
    often, many = -math.log(_MISSED), len(noisy)
    margin = min((often - many * math.log1p(-tilt * tilt)) / tilt for tilt in (part / 20 for part in range(1, 20)))
    return max(0, sum(noisy) + math.ceil(margin / float(noise)))
