"""Constant dates moved by an INTERVAL: ``DATE '1994-01-01' + INTERVAL '3' MONTH``. Constants are public, so it is done
while the question is read. A column is not moved: a date compared with a moved constant says the same."""

import calendar
import re
from datetime import date, datetime, timedelta

from sqlglot import exp

from hubbub.errors import NotAllowed, TypeMisfit
from hubbub.query.expression import Expression, Literal, literal

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_CLOCK = {"HOUR": timedelta(hours=1), "MINUTE": timedelta(minutes=1), "SECOND": timedelta(seconds=1)}
_WHOLE = re.compile(r"[-+]?\d{1,9}")


def interval_of(node: exp.Expr) -> exp.Interval | None:
    """The INTERVAL that stands here, if one does."""
    bare = node.unnest()
    return bare if isinstance(bare, exp.Interval) else None


def move_date(moment: Expression, by: exp.Interval, *, sign: int) -> Expression:
    """A constant date or timestamp, so much later or (``sign`` −1) earlier."""
    if not isinstance(moment, Literal) or not isinstance(moment.value, date):
        raise NotAllowed(
            "An INTERVAL is added to a constant date. Compare with one that is moved (day < DATE '2026-01-31' + "
            "INTERVAL 3 DAY), or count days: d - e > 3."
        )
    many, unit = sign * _many(by), _unit(by)
    if unit in _CLOCK and not isinstance(moment.value, datetime):
        raise NotAllowed(f"A date is moved by whole days, not by an {unit}. Write a TIMESTAMP.")
    try:
        return literal(_later(moment.value, many, unit))
    except (OverflowError, ValueError):
        raise TypeMisfit("A date is moved beyond the years 1 to 9999. Move it by less.") from None


def _many(by: exp.Interval) -> int:
    value = by.this.unnest() if by.this is not None else by
    sign = 1
    if isinstance(value, exp.Neg):
        value, sign = value.this.unnest(), -1
    text = str(value.this).strip() if isinstance(value, exp.Literal) else ""
    if not _WHOLE.fullmatch(text):
        raise NotAllowed("An INTERVAL is a whole number of one unit: INTERVAL '3' MONTH.")
    return sign * int(text)


def _unit(by: exp.Interval) -> str:
    unit = by.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if name not in {*_MONTHS, *_DAYS, *_CLOCK}:
        raise NotAllowed(f"INTERVAL knows {', '.join([*_CLOCK, *_DAYS, *_MONTHS])}, one at a time.")
    return name


def _later(moment: date, many: int, unit: str) -> date:
    if unit in _DAYS:
        return moment + timedelta(days=many * _DAYS[unit])
    if unit in _CLOCK:
        return moment + many * _CLOCK[unit]
    year, month = divmod(12 * moment.year + moment.month - 1 + many * _MONTHS[unit], 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError
    last = calendar.monthrange(year, month + 1)[1]  # the 31st of a month becomes the last day of a shorter one
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
