"""The terms of an answer, in one line of plain words: what was left out, the whole price, and whether it is fresh.

They follow from the question, the policy, the facts that were bought and the ledger: all of it is public.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.gate.release import note_age
from hubbub.query.answer.dropped import DroppedShare
from hubbub.query.answer.explain import explain_columns, unit_of, write_beyond
from hubbub.query.answer.printable import clean
from hubbub.query.ops import Measure
from hubbub.query.plan.plan import Plan

if TYPE_CHECKING:
    from hubbub.query.answer.answer import Answer

BEYOND = "rows and values beyond are not in the interval"


def write_terms(answer: "Answer") -> str:
    """Write the line under an answer."""
    plan = answer.plan
    limits, unit = "; ".join(list_limits(plan)), clean(unit_of(plan.question.relation) or "unit")
    counted = [f"of each {unit}: {limits}; {_cover(plan, answer.dropped, unit) or BEYOND}"] if limits else []
    counted += [clean(write_beyond(*one)) for one in plan.question.beyond.items()]
    paid = f"entry {answer.entry} of account {clean(plan.policy.account)!r}{note_age(answer.stored, fresh='fresh')}"
    sure = f"± {100 * answer.confidence:g}%" + (", all groups together" if answer.is_simultaneous else "")
    return " · ".join([sure, *counted, write_price(plan.price, plan.used_delta), paid])


def _cover(plan: Plan, dropped: Sequence[DroppedShare], unit: str) -> str:
    """Say what intervals cover beside the noise, and what they do not; nothing where that is all."""
    parts, most = (plan.sets or (plan,))[0].parts, plan.policy.limits.max_total_rows
    if most is not None and _drops_nothing(plan):
        clipped = any(part.bounds is not None for part in parts)
        beyond = "; values beyond bounds are not in the intervals" if clipped else ""
        return f"nothing is dropped where no {unit} has more than max_total_rows = {most:,}{beyond}"
    covered = [asked.text for asked, part in zip(plan.question.asked, parts, strict=True) if part.dropped]
    if not covered:
        return ""
    within = next(tally.dropped.within for part in parts for tally in part.dropped if tally.dropped is not None)
    said = [clean(one.sentence) for one in dropped]
    whose = "the intervals" if len(covered) == len(parts) else f"the intervals of {clean(', '.join(covered))}"
    said.append(f"{whose} cover that where no {unit} has more than max_total_rows = {within:,}")
    clipped = any(part.bounds is not None and part.dropped for part in parts)
    rest = [] if len(covered) == len(parts) else ["other intervals cover the noise alone"]
    return "; ".join([*said, *rest, *(["values beyond bounds are not in them"] if clipped else [])])


def write_price(epsilon: Fraction, delta: Fraction) -> str:
    """Write all that an answer cost, with what was bought for it."""
    return f"price in all ε = {float(epsilon):.6g}" + (f", δ = {float(delta):.3g}" if delta else "")


def _drops_nothing(plan: Plan) -> bool:
    """Return whether limits drop nothing of a unit that has no more rows than the owner says."""
    return all(one.is_covered and not any(part.dropped for part in one.parts) for one in plan.sets or (plan,))


def list_limits(plan: Plan) -> Iterator[str]:
    """Yield each limit that could have left something of a unit out."""
    aggregate = plan.aggregate
    groups = bool(plan.question.groups)
    if groups and (plan.selection is not None or plan.sets or aggregate.most_groups < plan.cells):
        yield f"at most {_count(aggregate.most_groups, 'group')}"
    columns = list(explain_columns(plan))
    if not aggregate.single and (rows := _rows(plan, columns)) is not None:
        yield f"at most {_count(rows, 'row')}" + (" a group" if groups else "")
    if aggregate.together is not None:
        yield f"at most {_count(aggregate.together.total, 'row')} in all groups"
    clipped: dict[str, list[str]] = {}
    for part, column in zip(plan.parts, columns, strict=True):
        if ends := column.get("each") or column.get("bounds"):
            what = "its part of " if column.get("each") else "values of "
            other = f" and {_range(part.other_bounds)}" if part.other_bounds is not None else ""
            clipped.setdefault(_range(ends) + other, []).append(what + clean(column["text"]))
    for ends, texts in clipped.items():
        yield f"{', '.join(texts)} in {ends}"


def _rows(plan: Plan, columns: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the most rows of a unit that count in a group; None where units are counted, whatever their rows."""
    for part, column in zip(plan.parts, columns, strict=True):
        counts_rows = part.choice is not None or any(tally.measure is not Measure.UNITS for tally in part.tallies)
        if counts_rows and column["rows_per_group"] is not None:
            return int(column["rows_per_group"])
    return None


def _range(ends: Sequence[Any]) -> str:
    return f"{float(ends[0]):,g} … {float(ends[1]):,g}"


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"
