"""The cost of a question and the noise of its answer, before anything is paid or read. Free, and public."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hubbub.privacy.affordable import tell_price, tell_room
from hubbub.privacy.explain import explain as reading
from hubbub.privacy.rounding import exp_up
from hubbub.privacy.sensitivity import Neighbors
from hubbub.privacy.ways import Payer
from hubbub.query.aggregates.function import CONFIDENCE, Margins, shorten
from hubbub.query.answer.printable import clean
from hubbub.query.missing.bought import WantedFact
from hubbub.query.missing.looks import Look, whole_price
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Reduce,
    Relation,
    RelationUnion,
    Scan,
    Window,
    below,
)
from hubbub.query.plan.collect import Ingredients
from hubbub.query.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it as a dictionary (``to_dict``), as text (``str``) or as HTML in a notebook."""

    plan: Plan
    payer: Payer
    """Whoever asks, with the room in every balance that it counts against."""
    known: Mapping[WantedFact, Any] = field(default_factory=dict)
    """What the question lacks and whoever asks has bought, or been given, before."""
    unknown: Mapping[Look, Fraction] = field(default_factory=dict)
    """What it would buy first, each with its ε; the plan is then the one for any value of it."""
    where: str | None = None
    """Where the engine runs it, and why, where tables are a server's."""
    advice: tuple[dict[str, Any], ...] = ()
    """Which limit would make the whole error the least, where whoever asks has bought advice about the table."""

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        plan, payer = self.plan, self.payer
        cost = whole_price(plan.cost, self.unknown, plan.policy)
        charged = plan.used + sum(self.unknown.values())
        slack, failure = plan.policy.budget.delta and plan.delta, bool(cost.failure)
        columns = explain_columns(plan)
        return {
            "question": plan.question.text,
            "account": plan.policy.account,
            "unit": unit_of(plan.question.relation),
            "neighbors": plan.policy.budget.neighbors.value,
            "epsilon": float(plan.epsilon + sum(self.unknown.values())),
            "delta": float(plan.delta),
            "groups": plan.cells,
            "groups_per_unit": plan.aggregate.most_groups,
            "rows_over_groups": [] if self.unknown else [_together(one) for one in _split_sets(plan)],
            "conditions": None if plan.beside is None else plan.beside.plan.cells,
            "one_row_a_unit": plan.aggregate.single,
            "rows": _steps(plan.question.relation),
            "keys": [_keys(one) for one in plan.sets or (plan,) if one.selection is not None],
            "sets": [[plan.question.groups[place].name for place in one] for one in plan.question.sets],
            "columns": [_not_yet(one) for one in columns] if self.unknown else columns,
            "bought": [{"what": one.text, "value": value} for one, value in self.known.items()],
            "to_buy": [{"what": one.text, "epsilon": float(share)} for one, share in self.unknown.items()],
            "advice": list(self.advice),
            "charged_epsilon": float(charged),
            "ways": [{"way": name, "epsilon": float(epsilon)} for name, epsilon in plan.ways],
            "cost": {
                "loss_units": cost.loss,
                "failure_units": cost.failure,
                "pure_units": cost.pure,
                "text": tell_price(payer, cost, epsilon=charged),
            },
            "left": tell_room(payer, delta=slack, failure=failure),
            "left_afterwards": tell_room(payer.after(cost), delta=slack, failure=failure),
            "fits": payer.room.fits(cost),
            "questions_like_it": payer.room.count(cost),
            "odds": _odds(charged, plan.used_delta, plan.policy.budget.neighbors),
            **({} if self.where is None else {"where": self.where}),
        }

    def __str__(self) -> str:
        told = self.to_dict()
        lines = [
            clean(told["question"]),
            "",
            f"unit        {clean(str(told['unit']))} ({told['neighbors']} neighbours), "
            + _where(told)
            + (", with one row each, as the owner's check has seen" if told["one_row_a_unit"] else ""),
        ]
        lines += [f"rows        {clean(step)}" for step in told["rows"]]
        lines += [f"counted     {clean(one['sentence'])}" for one in told["rows_over_groups"]]
        lines += [f"keys        {clean(one['sentence'])}" for one in told["keys"]]
        lines += [f"bought      {clean(one['what'])}: {clean(_as_json(one['value']))}" for one in told["bought"]]
        lines += [f"clipped     {clean(write_beyond(*one))}" for one in self.plan.question.beyond.items()]
        lines += [f"to buy      {clean(one['what'])}, with ε = {one['epsilon']:.3g}" for one in told["to_buy"]]
        lines += [f"where       questions {told['where']}"] if "where" in told else []
        for column in told["columns"]:
            lines.append(f"{'answer':<12}{clean(column['text'])}: {column['sentence']}")
            if column["dropped"] is not None:
                lines.append(f"{'':<12}{clean(column['text'])}: {column['dropped']['sentence']}")
        lines += [f"{'advice':<12}{clean(one['sentence'])}" for one in told["advice"]]
        lines += [
            f"odds        {told['odds']['sentence']}",
            f"like it     {_count_text(told['questions_like_it'])}",
            *_lower(told),
            f"price       {told['cost']['text']} of {told['left']} left; "
            + (f"{told['left_afterwards']} afterwards" if told["fits"] else "does not fit"),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _lower(told: dict[str, Any]) -> list[str]:
    """Say that less is used than was asked for, where that errs least."""
    if told["charged_epsilon"] >= told["epsilon"] * (1 - 1e-9):
        return []
    used = f"ε = {told['charged_epsilon']:.6g} is used of ε = {told['epsilon']:.6g}"
    return [f"noise       {used}: of all noise that the balance can pay for, this errs least"]


def _count_text(count: int | None) -> str:
    if count is None:
        return "it costs nothing"
    return f"the balance pays for {count:,} question{'' if count == 1 else 's'} at this price"


def _odds(epsilon: Fraction, delta: Fraction, neighbors: Neighbors) -> dict[str, Any]:
    """Say what the price means for one person: how far anybody's odds about them can move.

    Privacy:
        Claim: what is said of odds about one person holds for any two databases that the sentence is about.
        Proof: where units are replaced, two that differ in what a person's rows say are neighbours. Where they come and
            go, two of which one has the person and the other has not are; from rows of one kind to rows of another it
            is two steps, and so a group of two: (2ε, (1 + e^ε)·δ). The rest is ``privacy.explain``.
        Needs: the ε and δ of all that the price pays for, facts included.
        Ref: SOUNDNESS 21.
    """
    there = reading(min(epsilon, _MOST_READ), delta, prior=Fraction(1, 2))
    rows = there
    if neighbors is Neighbors.ADD_REMOVE:
        twice = min(2 * epsilon, _MOST_READ)
        rows = reading(twice, min(_MOST_DELTA, delta * (1 + exp_up(min(epsilon, _MOST_READ)))), prior=Fraction(1, 2))
    but = f", but for a chance of {rows.chance:.3g}" if delta else ""
    sure, factor = f"at most {there.posterior[1]:.2%}", f"{there.odds[1]:.3g} to 1"
    if rows is there:
        held = "something that one person's rows say to be as likely as not"
        told = f"{sure} likely after the answer (odds of {factor})"
    else:
        held = "it to be as likely as not that one person is in the data"
        beside = f"at most {rows.posterior[1]:.2%} ({rows.odds[1]:.3g} to 1)"
        told = f"{sure} likely after the answer (odds of {factor}), and something that the person's rows say {beside}"
    return {
        "factor": there.odds[1],
        "prior": 0.5,
        "posterior": there.posterior[1],
        "rows_factor": rows.odds[1],
        "rows_posterior": rows.posterior[1],
        "chance": rows.chance,
        "sentence": f"whoever held {held} holds it {told}{but}",
    }


_MOST_READ = Fraction(700)
"""Beyond this ε the odds are no float any more."""
_MOST_DELTA = 1 - Fraction(1, 1 << 53)


def _where(told: dict[str, Any]) -> str:
    """In how many groups a unit counts, and of how many."""
    most, groups = told["groups_per_unit"], f"{told['groups']:,}"
    if told["conditions"]:
        return f"under at most {most} of {told['conditions']} conditions, which are measured side by side"
    if told["sets"]:
        return f"in each of {len(told['sets'])} grouping sets ({groups} groups together, listed ones)"
    if told["keys"]:
        return f"in at most {most} groups" + (f", {groups} for each key that is shown" if told["groups"] > 1 else "")
    return f"in at most {most} of {groups} groups"


def _split_sets(plan: Plan) -> list[Plan]:
    return [one for one in plan.sets or (plan,) if one.aggregate.together is not None]


def _together(plan: Plan) -> dict[str, Any]:
    """With how many rows a unit counts over all groups, where that is said."""
    together, groups = plan.aggregate.together, plan.aggregate.most_groups
    assert together is not None
    names = [group.name for group in plan.question.groups]
    return {
        "by": names,
        "rows": together.total,
        "groups": groups,
        "sentence": f"a unit counts with at most {together.total:,} rows over at most {groups:,} groups"
        + f" by {', '.join(names)}",
    }


def _keys(plan: Plan) -> dict[str, Any]:
    """Explain how private keys are selected, and how many units one needs."""
    assert plan.selection is not None
    chosen = plan.selection.mechanism
    names = [group.name for group in plan.question.groups if group.private]
    half, sure = math.ceil(chosen.half_point()), math.ceil(chosen.error(beta=1 - CONFIDENCE))
    weighed = ""
    if plan.selection.weight_bits is not None and chosen.keys_per_unit > 1:
        weighed = f" that are in {chosen.keys_per_unit} groups each (fewer, if in fewer)"
    return {
        "names": names,
        "mechanism": type(chosen).__name__,
        "threshold": chosen.threshold,
        "shown_by_half": half,
        "shown_by_most": sure,
        "delta": float(chosen.event.failure),
        "sentence": f"{', '.join(names)}: not public; shown every other time with {half:,} units{weighed}, "
        f"{CONFIDENCE:.0%} of the time with {sure:,}, and what one unit alone has "
        f"with δ = {float(chosen.event.failure):.3g} at most ({type(chosen).__name__})",
    }


def explain_columns(plan: Plan) -> list[dict[str, Any]]:
    """Explain each aggregate: its mechanism, its error and where values are clamped."""
    margins, pairs = plan.margins, zip(plan.question.asked, plan.parts, strict=True)
    return [asked.function.explain(asked, part, margins) | _explain_dropped(part, margins) for asked, part in pairs]


def write_beyond(text: str, share: float) -> str:
    """Warn of bounds that were bought, and clip what units have."""
    return f"about {100 * share:.2g}% of units are beyond {text}, and are clipped: declare wider ones if that matters"


def _explain_dropped(part: Ingredients, margins: Margins) -> dict[str, Any]:
    """Say how far what limits drop may be off, where it is measured."""
    if not part.dropped:
        return {"dropped": None}
    limits = part.dropped[0].dropped
    assert limits is not None
    around = [margins.bound(tally, 1 - CONFIDENCE) for tally in part.dropped]
    needed = ", ".join(f"± {shorten(one)}" for one in around)
    sentence = f"what limits drop of up to {limits.within:,} rows of a unit is measured too ({needed})"
    return {"dropped": {"within": limits.within, "margins": [float(one) for one in around], "sentence": sentence}}


def _not_yet(column: dict[str, Any]) -> dict[str, Any]:
    """Leave out the noise of a column that depends on facts that are bought first."""
    sentence = f"{column['mechanism']}; how noisy it is follows from what is bought"
    unknown = {"margin": None, "rank_margin": None, "bounds": None, "rows_per_group": None, "dropped": None}
    return column | unknown | {"sentence": sentence}


def _as_json(value: Any) -> str:
    return (
        " … ".join(f"{float(Fraction(end)):g}" for end in value[:2]) if isinstance(value, list) else f"at most {value}"
    )


def unit_of(relation: Relation) -> str | None:
    """Return the column that names the unit, in the first table."""
    return relation.unit if isinstance(relation, Scan) else unit_of(below(relation)[0])


def table_of(relation: Relation) -> str:
    """Return the first table."""
    return relation.table if isinstance(relation, Scan) else table_of(below(relation)[0])


def _steps(relation: Relation) -> list[str]:
    """Describe at each step which unit the rows belong to."""
    done = [step for one in below(relation) if unit_of(one) is not None for step in _steps(one)]
    return [*done, _step(relation)]


def _step(relation: Relation) -> str:
    match relation:
        case Scan(table=table, unit=unit, path=path) if path:
            return f"scan {table}: each row belongs to the {unit} found by its {', then '.join(map(str, path))}"
        case Scan(table=table, unit=unit):
            return f"scan {table}: each row belongs to its {unit}"
        case Filter():
            return "filter: a condition on one row"
        case Project():
            return "project: new columns from one row"
        case JoinPublic(kind=kind, most=most):
            return f"{kind} join with a public table: a row becomes at most {most}, of the same unit"
        case Cap(most=most):
            return f"cap: at most {most:,} rows of a unit, chosen by a keyed hash"
        case JoinOwn(kind=kind):
            return f"{kind} join of rows of the same unit"
        case Match(other=other, without=without):
            whose = "a public table" if unit_of(other) is None else "rows of the same unit"
            return f"match: rows {'without' if without else 'with'} a partner in {whose}"
        case Reduce(keys=keys):
            return f"reduce: one row for each unit{' and key' if keys else ''}"
        case Window(ranking=ranking):
            return f"window: {ranking} among rows of the same unit"
        case RelationUnion(inputs=inputs):
            return f"union: rows of {len(inputs)} relations, each still its unit's"
