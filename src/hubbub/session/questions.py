"""Questions in SQL as jobs: one, several at one price, and the diagnosis of what a question's limits drop."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import NotAllowed, ParameterError, PolicyError
from hubbub.gate.meter import Meter, Reply
from hubbub.parameters import Real, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import LOSS_UNIT, whole_units_rounded_down
from hubbub.query.aggregates.function import CONFIDENCE
from hubbub.query.answer import stored
from hubbub.query.answer.answer import Answer, answer_of
from hubbub.query.answer.diagnose import diagnostics
from hubbub.query.answer.diagnosis import Diagnosis, diagnosis_of
from hubbub.query.missing.bought import apply_facts
from hubbub.query.missing.lacking import lacking
from hubbub.query.plan.conditions import KNOWN_AS, may_be_grouped, rename
from hubbub.query.plan.covering import Covers, raise_limits
from hubbub.query.plan.measure import measure_plan, measure_sets
from hubbub.query.plan.plan import Plan, plan, together
from hubbub.query.plan.within import check_additive, is_within, least_epsilon
from hubbub.query.question import Question
from hubbub.query.read.scope import Catalogue
from hubbub.query.read.sql import question
from hubbub.query.read.text.options import agreed, limit_groups, split_options
from hubbub.query.requests import Tallies
from hubbub.session.job import Draft, Job, Known, Purchase, SealedReader
from hubbub.session.session import Session

_DIAGNOSE = "diagnose "


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTerms:
    """The price that an answer may cost, or the accuracy that it must have."""

    epsilon: Real | None = None
    delta: Real | None = None
    within: Real | None = None
    """A margin of error of counts and sums that is paid for, in place of an ε."""
    confidence: Real = CONFIDENCE
    """With which ``within`` holds."""
    error: str | None = None
    """What intervals cover, as ``Covers`` says it; None is what limits drop, where that can be measured."""


_WHOLE, _ACCURATE = " with intervals of the whole error", " within an error of the noise"
"""What the ledger knows such questions as, behind their own names: they are not served what has other intervals."""


def covers_of(error: str | None, policy: Policy) -> Covers:
    """Return what intervals are to cover: what was said, or what limits drop where the policy lets that be measured."""
    known = policy.limits.max_total_rows is not None
    if error is None:
        return Covers.DROPPED if known else Covers.NOISE
    try:
        covers = Covers(error)
    except ValueError:
        raise ParameterError("error", '"noise", "dropped" or "whole"', error) from None
    if covers is not Covers.NOISE and not known:
        raise NotAllowed(
            "No private interval covers the rows that limits drop where a unit may have any number of them. Let the "
            'owner declare max_total_rows, or say error = "noise".'
        )
    return covers


def draft_sql(text: str, price: QuestionTerms, *, session: Session, catalogue: Catalogue) -> Draft[Plan, Answer]:
    """Read a question; its plan waits for the facts that it lacks."""
    bare, options = split_options(text)
    policy = limit_groups(session.policy, options)
    asked = replace(question(bare, catalogue), limited=options.max_groups is not None)
    delta = agreed("delta", price.delta, options.delta)
    epsilon = agreed("epsilon", price.epsilon, options.epsilon)
    covers = Covers.NOISE if price.within is not None else covers_of(price.error, policy)
    if price.within is not None and price.error not in {None, Covers.NOISE}:
        raise NotAllowed("How far it may be off is about the noise alone: leave error out, or say epsilon.")
    if covers is Covers.WHOLE:  # limits that nobody declared are not bought: those that drop nothing are known
        policy = _declare_limits(policy)
    wanted, name = tuple(lacking(asked, policy)), _WHOLE if covers is Covers.WHOLE else ""
    if epsilon is None and price.within is None:
        raise ParameterError("epsilon", "given: what the answer may cost; or within, how far it may be off", None)
    if epsilon is not None and price.within is not None:
        raise ParameterError(
            "within", "left out beside an epsilon: say what it may cost, or how far it may be off", price.within
        )
    if price.within is not None:
        known, unknown = session.facts(wanted)
        if unknown:
            raise NotAllowed(
                "How far it is off is known once its bounds and limits are. Ask it with epsilon first, which buys "
                "them, or let the owner declare them."
            )
        completed, limited = apply_facts(asked, policy, known)
        if limited.limits.max_total_rows is not None:
            name = _name_accuracy(completed, limited, session=session)
        epsilon = _find_accurate(
            _name_apart(completed, name),
            limited,
            within=price.within,
            confidence=price.confidence,
            delta=delta,
            session=session,
        )
    assert epsilon is not None
    whole = whole_units_rounded_down(positive("epsilon", epsilon))

    def plan_with(facts: Known, purchase: Purchase) -> Plan:
        known, limited = apply_facts(replace(asked, grouped=purchase.grouped), policy, facts)
        made = plan(
            _name_apart(known, name),
            limited,
            epsilon=purchase.rest,
            delta=delta,
            payer=purchase.payer,
            ways=purchase.ways,
            covers=covers,
        )
        return replace(made, bought=whole - purchase.rest)

    return Draft(wanted=wanted, price=whole, plan=plan_with, job=lambda planned: sql_job(planned, price=whole))


def _name_apart(asked: Question, name: str) -> Question:
    """Return the question under a name of its own, behind which the ledger finds no other kind of answer."""
    if not name:
        return asked
    return replace(asked, grouped=False if name == _WHOLE else asked.grouped, known_as=asked.identity + name)


def _name_accuracy(asked: Question, policy: Policy, *, session: Session) -> str:
    """Return what an accuracy is known by: where what limits drop would be measured too, other numbers do not serve."""
    usual = plan(asked, policy, epsilon=session.payer().terms.epsilon, payer=session.payer(), covers=Covers.DROPPED)
    return _ACCURATE if any(part.dropped for part in usual.parts) else ""


def _declare_limits(policy: Policy) -> Policy:
    """Return the policy with limits that drop nothing in place of those that nobody declared."""
    limits, raised = policy.limits, raise_limits(policy).limits
    known = {name: getattr(limits, name) or getattr(raised, name) for name in ("max_rows", "max_groups")}
    return replace(policy, limits=replace(limits, **known))


def _find_accurate(
    asked: Question,
    policy: Policy,
    *,
    within: Real,
    confidence: Real,
    delta: Real | None,
    session: Session,
) -> Fraction:
    """Find an ε at which every number is so close: that of an answer which is there already, if one is close enough.

    With less left another noise may have to be paid for, at a higher ε: the same question would then be charged twice.
    """
    check_additive(asked)
    payer = session.payer()
    planned = plan(asked, policy, epsilon=payer.terms.epsilon, delta=delta, payer=payer)
    job = sql_job(planned, price=planned.epsilon)
    ask = replace(session.ask_of(job), epsilon=LOSS_UNIT)
    names = [job.question] if job.renamed is None else [job.question, job.renamed]
    near = [
        one.epsilon
        for name in names
        for one in session.ledger.list_free(replace(ask, question=name))
        if is_within(
            plan(asked, policy, epsilon=one.epsilon - one.bought, delta=one.delta, ways=one.ways),
            within=within,
            confidence=confidence,
        )
    ]
    if near:
        return min(near)
    return least_epsilon(asked, policy, within=within, confidence=confidence, delta=delta, payer=payer)


def sql_job(planned: Plan, *, price: Fraction) -> Job[Answer]:
    """Make the job of one question."""
    requests = tuple(Tallies(aggregate=part.aggregate) for part in planned.sets or (planned,))

    def present(reply: Reply) -> Answer:
        terms, drawn = stored.read(reply.answer, planned)
        shown = planned
        if terms != stored.DrawnTerms.of(planned):  # drawn at a higher ε, or in another way: with its own error bars
            made = plan(planned.question, planned.policy, epsilon=terms.epsilon, delta=terms.delta, ways=terms.ways)
            shown = replace(made, bought=terms.bought)
        return answer_of(shown, drawn, entry=reply.entry, stored=reply.stored)

    return Job(
        question=planned.question.identity,
        policy=planned.policy,
        events=planned.events,
        epsilon=price,
        delta=planned.delta,
        requests=requests,
        measure=lambda read, meter: measure_sets(planned, [read(request) for request in requests], meter),
        present=present,
        ways=planned.ways,
        bought=planned.bought,
        renamed=_rename(planned),
    )


def _rename(planned: Plan, before: str = "") -> str | None:
    return before + rename(planned.question.identity) if may_be_grouped(planned.question) else None


def draft_joint(
    texts: Sequence[str], *, epsilon: Real, delta: Real | None, policy: Policy, catalogue: Catalogue
) -> Draft[tuple[Plan, ...], list[Answer]]:
    """Read several questions that share one price: all of them are answered, or none."""
    asked = [question(text, catalogue) for text in texts]

    def plan_with(facts: Known, purchase: Purchase) -> tuple[Plan, ...]:
        return together(
            asked,
            policy,
            epsilon=purchase.rest,
            delta=delta,
            payer=purchase.payer,
            ways=purchase.ways,
            grouped=purchase.grouped,
        )

    price = whole_units_rounded_down(positive("epsilon", epsilon))
    return Draft(wanted=(), price=price, plan=plan_with, job=lambda plans: joint_job(asked, plans, policy=policy))


def joint_job(asked: Sequence[Question], plans: tuple[Plan, ...], *, policy: Policy) -> Job[list[Answer]]:
    """Make the job of several questions that were planned together."""
    grouped = any(each.beside is not None for each in plans)
    requests = tuple(Tallies(aggregate=each.aggregate) for each in plans if not each.is_read_elsewhere)

    def present(reply: Reply) -> list[Answer]:
        parts = json.loads(reply.answer)
        terms, shown = stored.read(parts[0], plans[0])[0], plans
        if terms != stored.DrawnTerms.of(plans[0]):  # drawn at a higher ε, or in another way
            shown = together(asked, policy, epsilon=terms.epsilon, delta=terms.delta, ways=terms.ways)
        return [
            answer_of(each, stored.read(part, each)[1], entry=reply.entry, stored=reply.stored)
            for each, part in zip(shown, parts, strict=True)
        ]

    def measure(read: SealedReader, meter: Meter) -> str:
        waiting, shared, written = iter(requests), "", []
        for each in plans:
            told = shared if each.is_read_elsewhere else measure_plan(each, read(next(waiting)), meter)
            shared = told if each.beside is not None else shared
            written.append(told)
        return json.dumps(written)

    known = "ask " + json.dumps([each.text for each in asked], ensure_ascii=False)
    return Job(
        question=known + KNOWN_AS if grouped else known,
        policy=policy,
        events=tuple(event for each in plans for event in each.events),
        epsilon=plans[0].epsilon,
        delta=plans[0].delta,
        requests=requests,
        measure=measure,
        present=present,
        ways=plans[0].ways,
        bought=plans[0].bought,
        renamed=None if len(plans) == 1 else known if grouped else known + KNOWN_AS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDiagnosis:
    """The plan of a question, and those that count whom its limits concern."""

    about: Plan
    parts: tuple[Plan, ...]


def plan_diagnosis(planned: Plan, purchase: Purchase) -> PlannedDiagnosis:
    """Plan what is counted about a plan, with the plan's own (ε, δ)."""
    parts = together(
        [diagnostic.question for diagnostic in diagnostics(planned)],
        planned.policy,
        epsilon=planned.epsilon,
        delta=planned.delta,
        payer=purchase.payer,
        ways=purchase.ways,
    )
    return PlannedDiagnosis(about=planned, parts=tuple(replace(part, bought=planned.bought) for part in parts))


def diagnosis_job(asked: PlannedDiagnosis, *, price: Fraction) -> Job[Diagnosis]:
    """Make the job that counts the units of which a plan drops or clips something."""
    planned, plans = asked.about, asked.parts
    about = diagnostics(planned)
    questions, policy = [diagnostic.question for diagnostic in about], planned.policy
    requests = tuple(Tallies(aggregate=each.aggregate) for each in plans)
    named = [stored.groups_name(planned), [number.what for diagnostic in about for number in diagnostic.numbers]]

    def measure(read: SealedReader, meter: Meter) -> str:
        parts = [measure_plan(each, read(request), meter) for each, request in zip(plans, requests, strict=True)]
        return json.dumps({"about": named, "parts": parts})

    def present(reply: Reply) -> Diagnosis:
        answer = json.loads(reply.answer)
        if answer["about"] != named:
            raise PolicyError(
                "This was diagnosed for other groups: a public table has changed since. Let the owner name a new "
                "version of the data."
            )
        parts, shown = answer["parts"], plans
        terms = stored.read(parts[0], plans[0])[0]
        if terms != stored.DrawnTerms.of(plans[0]):  # drawn at a higher ε, or in another way
            made = together(questions, policy, epsilon=terms.epsilon, delta=terms.delta, ways=terms.ways)
            shown = tuple(replace(part, bought=terms.bought) for part in made)
        drawn = [stored.read(part, each)[1][0].noisy for each, part in zip(shown, parts, strict=True)]
        return diagnosis_of(about, shown, drawn, entry=reply.entry, stored=reply.stored)

    return Job(
        question=_DIAGNOSE + planned.question.identity,
        policy=policy,
        events=tuple(event for each in plans for event in each.events),
        epsilon=price,
        delta=planned.delta,
        requests=requests,
        measure=measure,
        present=present,
        ways=plans[0].ways,
        bought=plans[0].bought,
        renamed=_rename(planned, before=_DIAGNOSE),
    )
