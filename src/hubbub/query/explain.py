"""What a question will cost and how noisy its answer will be, before anything is paid or read. Free, and public."""

import html
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.ledger.terms import Statement
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT
from hubbub.query.combine import CONFIDENCE, margin
from hubbub.query.ops import Aggregate, Filter, JoinPublic, Project, Relation, Scan
from hubbub.query.plan import Plan
from hubbub.query.question import COUNTS, Aggregation
from hubbub.query.shown import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it as a dictionary (``to_dict``), as text (``str``) or as HTML in a notebook."""

    plan: Plan
    statement: Statement

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        plan, cost, left = self.plan, self.plan.cost, self.statement.left
        return {
            "question": plan.question.text,
            "account": plan.policy.account,
            "unit": _unit(plan.question.relation),
            "neighbors": plan.policy.budget.neighbors.value,
            "epsilon": float(plan.epsilon),
            "delta": float(plan.delta),
            "groups": plan.cells,
            "groups_per_unit": plan.aggregate.most_groups,
            "one_row_a_unit": plan.aggregate.single,
            "rows": _steps(plan.question.relation),
            "columns": [_column(plan, place) for place in range(len(plan.question.asked))],
            "cost": {"loss_units": cost.loss, "failure_units": cost.failure, "text": self._amount(cost.loss)},
            "left": self._amount(left.loss),
            "left_afterwards": self._amount(max(0, left.loss - cost.loss)),
            "fits": cost.loss <= left.loss and cost.failure <= left.failure,
        }

    def _amount(self, units: int) -> str:
        symbol = "ε" if self.plan.policy.budget.delta == 0 else "ρ"
        return f"{symbol} = {float(units * LOSS_UNIT):.6g}"

    def __str__(self) -> str:
        told = self.to_dict()
        lines = [
            clean(told["question"]),
            "",
            f"unit        {clean(str(told['unit']))} ({told['neighbors']} neighbours), "
            f"in at most {told['groups_per_unit']} of {told['groups']:,} groups"
            + (", with one row each, as the owner's check has seen" if told["one_row_a_unit"] else ""),
        ]
        lines += [f"rows        {clean(step)}" for step in told["rows"]]
        for column in told["columns"]:
            lines.append(f"{'answer':<12}{clean(column['text'])}: {column['sentence']}")
        failure = told["cost"]["failure_units"]
        beside = f", δ₀ = {float(failure * DELTA_UNIT):.3g}" if failure else ""
        lines += [
            f"price       {told['cost']['text']}{beside} of {told['left']} left; "
            + (f"{told['left_afterwards']} afterwards" if told["fits"] else "does not fit"),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _column(plan: Plan, place: int) -> dict[str, Any]:
    asked, part = plan.question.asked[place], plan.parts[place]
    used = [one for one in (part.count, part.total, part.squares) if one is not None]
    mechanisms = [type(plan.mechanisms[one]).__name__ for one in used]
    if asked.function in COUNTS or asked.function is Aggregation.SUM:
        around = margin(plan, used[0], 1 - CONFIDENCE)
        sentence = f"± {_short(around)} ({CONFIDENCE:.0%}), {mechanisms[0]}"
        expected: float | None = float(around)
    else:
        needed = ", ".join(f"± {_short(margin(plan, one, (1 - CONFIDENCE) / len(used)))}" for one in used)
        sentence = f"from {len(used)} noisy sums ({needed}), {mechanisms[0]}; its own interval follows from them"
        expected = None
    bounds = None if part.bounds is None else [float(end) for end in part.bounds]
    return {
        "text": asked.text,
        "mechanism": mechanisms[0],
        "margin": expected,
        "bounds": bounds,
        "rows_per_group": 1 if plan.aggregate.single else plan.policy.limits.max_rows,
        "sentence": sentence + (f"; values clamped to {bounds[0]:g} … {bounds[1]:g}" if bounds else ""),
    }


def _short(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"


def _unit(relation: Relation | Aggregate) -> str | None:
    match relation:
        case Scan(unit=unit):
            return unit
        case Filter(input=below) | Project(input=below) | JoinPublic(input=below) | Aggregate(input=below):
            return _unit(below)


def _steps(relation: Relation) -> list[str]:
    """Whose the rows are at each step."""
    match relation:
        case Scan(table=table, unit=unit):
            return [f"scan {table}: each row belongs to its {unit}"]
        case Filter(input=below):
            return [*_steps(below), "filter: a condition on one row"]
        case Project(input=below):
            return [*_steps(below), "project: new columns from one row"]
        case JoinPublic(input=below, kind=kind, most=most):
            return [*_steps(below), f"{kind} join with a public table: a row becomes at most {most}, of the same unit"]
