"""Is a mechanism what it says it is? Six questions, asked of every mechanism in the registry, and of yours.

    statement   the class says what it claims, why, on what it relies and where that is from
    mass        the stated masses add up to 1
    ratio       the exact loss on the worst pair of neighbours is within the claim, and comes close to it
    law         draws fit the stated masses
    audit       an empirical lower bound, which knows nothing of the masses, stays below the claim
    twin        the same audit with the same settings accuses a twin that really loses 1.25 times the claim

The last one is what makes the one before it worth something: an audit that cannot see a quarter too much loss would
pass anything. Each statistical check accuses an honest mechanism with probability at most `FALSE_ALARM`.

Nothing here needs pytest: `conform` returns its Answers, or raises a ConformanceError with one sentence.
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.audit import law
from hubbub.audit.blackbox import lower_bound, lower_bound_delta
from hubbub.audit.exact import ORDERS, Laws, zcdp_delta
from hubbub.audit.finding import Finding
from hubbub.audit.law import FEW, SUSPICION, many
from hubbub.errors import ConformanceError

if TYPE_CHECKING:
    from hubbub.mechanisms.specimens.specimen import Specimen

FALSE_ALARM = 1e-6
LAW_ALARM = FALSE_ALARM / 4
"""Of each of the four samples that are held against a law."""
TWIN = 1.25
"""A twin really loses this many times the claim."""

_CLOSE = 0.9
_ROUNDING = 1e-9
_WITHIN = 0.01
_TAIL = 1e-6
"""The most mass that may lie beyond a specimen's listed outputs."""

_SIGHT = 13.0
"""Standard errors between claim and twin that an audit is given draws for. The confidence takes 5.2 of them
and choosing the event about one; some seven are left, so that a twin is hardly ever missed."""

_LEAST_DELTA = 0.05
_SECTION = re.compile(r"^Privacy:\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
_PARTS = ("Claim", "Proof", "Needs", "Ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The questions to a specimen and its answers, a line each."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.name, *(f"  {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The task of an audit: the claim, the half of it that is put to the test, and the number of draws."""

    epsilon: float
    delta: float
    bounds: str
    samples: int

    def run(self, mechanism: Any, pair: tuple[Any, Any]) -> Finding:
        """Audit a mechanism (the specimen's, or its twin) with these settings."""
        if self.bounds == "epsilon":
            return lower_bound(mechanism, *pair, delta=self.delta, samples=self.samples, confidence=1 - FALSE_ALARM)
        return lower_bound_delta(
            mechanism, *pair, epsilon=self.epsilon, samples=self.samples, confidence=1 - FALSE_ALARM
        )

    def is_refuted_by(self, finding: Finding) -> bool:
        """Return True if a finding accuses the claim."""
        return finding.accuses(self.epsilon, delta=self.delta)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:.6g}" if self.delta == 0 else f"(ε, δ) = ({self.epsilon:.6g}, {self.delta:.6g})"


def conform(specimen: "Specimen") -> Answers:
    """Ask everything; Answers if all is well, else a ConformanceError that says what is not."""
    return Answers(name=specimen.name, lines=tuple(f"{name}: {check(specimen)}" for name, check in CHECKS.items()))


def check_statement(specimen: "Specimen") -> str:
    """The class's own docstring (not an inherited one) has a Privacy section with its four parts."""
    kind = type(specimen.mechanism)
    section = _SECTION.search(inspect.cleandoc(kind.__doc__ or "") + "\n")
    if section is None:
        raise _fault(specimen, f"{kind.__name__} has no Privacy section in its docstring")
    stated: list[tuple[str, str]] = re.findall(r"^\s+(\w+):[ \t]*(\S.*)?$", section.group(1), re.MULTILINE)
    missing = [part for part in _PARTS if not any(name == part and text for name, text in stated)]
    if missing:
        raise _fault(specimen, f"the Privacy section of {kind.__name__} does not state: {', '.join(missing)}")
    return next(text for name, text in stated if name == "Claim")


def check_mass(specimen: "Specimen", *, laws: Sequence[Laws] | None = None) -> str:
    """The masses of the listed outputs add up to 1, on both inputs, for the mechanism and for its twin."""
    missing = 0.0
    for own in laws or (_laws(specimen, one) for one in (specimen.mechanism, specimen.twin)):
        for total in own.totals:
            if not 1 - _TAIL <= total <= 1 + _ROUNDING:
                raise _fault(specimen, f"the masses of all outputs add up to {total:.12g} instead of 1")
            missing = max(missing, 1 - total)
    return f"{len(specimen.outputs)} outputs, at most {missing:.1g} beyond them"


def check_ratio(specimen: "Specimen", *, laws: Laws | None = None) -> str:
    """The exact loss on the worst pair, in both orders, is within ε, δ and ρ as claimed, and close to the first claim.

    Close, because a pair on which little is lost would say nothing of the claim; a specimen may say that it is loose.
    """
    event, laws = specimen.mechanism.event, laws or _laws(specimen, specimen.mechanism)
    failure = float(event.failure)
    shares: list[tuple[float, str]] = []
    if event.epsilon is not None:
        claim = float(event.epsilon)
        at_failure = laws.epsilon(failure + _ROUNDING if failure else 0.0)
        shares.append(_within(specimen, at_failure, claim, f"ε = {claim:.6g} at δ = {failure:.6g}"))
        if failure > 0:
            shares.append(_within(specimen, laws.delta(claim), failure, f"δ = {failure:.6g} at ε = {claim:.6g}"))
    if event.rho is not None:
        of_rho = _within_rho(specimen, laws, float(event.rho), failure)
        shares = shares or of_rho
    if not shares:
        raise _fault(specimen, "its event claims neither an ε nor a ρ")
    share, line = max(shares)
    if share < _CLOSE and not specimen.loose:
        raise _fault(specimen, f"the pair of inputs is not the worst one: {line}")
    return line


def _within_rho(specimen: "Specimen", laws: Laws, rho: float, failure: float) -> list[tuple[float, str]]:
    """ρ-zCDP at every order; beside a failure mass, the (ε, δ) curve that both together promise."""
    if failure == 0:
        return [_within(specimen, laws.renyi(a), a * rho, f"αρ = {a * rho:.6g} at α = {a:g}") for a in ORDERS]
    curve = [(epsilon, min(1.0, failure + zcdp_delta(rho, epsilon))) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)]
    return [_within(specimen, laws.delta(e), d, f"δ = {d:.6g} at ε = {e:g}") for e, d in curve]


def check_law(
    specimen: "Specimen",
    *,
    laws: Laws | None = None,
    first: tuple[int, int] | None = None,
    keep: Callable[[int, Any], None] = lambda side, answers: None,
) -> str:
    """Draws fit the stated masses: 10^6 on each input by ``repeat`` (10^5 if drawn one by one), 10^4 by ``draw``.

    ``draw`` is what the Meter calls and may be other code than ``repeat``. Each of the four gets a quarter of the false
    alarms (Bonferroni). With ``first``, so many by ``repeat`` and by ``draw`` are looked at first, and all where these
    look odd; the verdict is by all (`hubbub.audit.law` says what that costs). ``keep`` is handed what was drawn by
    ``repeat`` on the input of each side, 0 or 1.
    """
    laws, mechanism = laws or _laws(specimen, specimen.mechanism), specimen.mechanism
    ways: dict[str, tuple[Callable[[Any, int], Any], int]] = {
        "repeat": (lambda value, times: mechanism.repeat(value, times=times), many(specimen)),
        "draw": (lambda value, times: [mechanism.draw(value) for _ in range(times)], FEW),
    }
    lines = []
    for (how, (drawn, draws)), begin in zip(ways.items(), first or (0, 0), strict=True):
        for side, (value, logs) in enumerate(zip(specimen.pair, (laws.first, laws.second), strict=True)):
            counts = np.zeros(len(specimen.outputs) + 1, dtype=np.int64)
            for times in (begin, draws - begin):
                if times == 0:
                    continue
                answers = drawn(value, times)
                if len(answers) != times:
                    raise _fault(specimen, f"{how} gave {len(answers)} answers instead of {times}")
                if how == "repeat":
                    keep(side, answers)
                counts += law.tally(answers, specimen.outputs, specimen.cell)
                found = law.fit(counts, np.exp(logs))
                if not found.rejects(false_alarm=SUSPICION):
                    break
            if found.draws == draws and found.rejects(false_alarm=LAW_ALARM):
                words = f"{draws} answers by {how} do not fit the stated masses"
                raise _fault(specimen, f"{words} (p = {found.p_value:.2g})")
            lines.append(f"{found.draws} by {how} p = {found.p_value:.2g}")
    return ", ".join(lines)


def check_audit(specimen: "Specimen") -> str:
    """Check that everything an audit can prove stays below the claim."""
    trial = trial_of(specimen)
    finding = trial.run(specimen.mechanism, specimen.pair)
    if trial.is_refuted_by(finding):
        raise _fault(specimen, f"an audit refutes the claim {trial}: {finding!r}")
    return repr(finding)


def check_twin(specimen: "Specimen") -> str:
    """The same audit, with the same settings, accuses the twin of breaking the honest mechanism's claim."""
    trial = trial_of(specimen)
    finding = trial.run(specimen.twin, specimen.pair)
    if not trial.is_refuted_by(finding):
        raise _fault(specimen, f"the audit does not see that the twin breaks the claim {trial}: {finding!r}")
    return repr(finding)


CHECKS: dict[str, Callable[["Specimen"], str]] = {
    "statement": check_statement,
    "mass": check_mass,
    "ratio": check_ratio,
    "law": check_law,
    "audit": check_audit,
    "twin": check_twin,
}


def trial_of(specimen: "Specimen") -> Trial:
    """The claim that the twin breaks by a quarter, and the draws an audit needs to see that.

    The twin's loss is computed, not assumed. A claim in ε is tried in ε, and also in δ if it allows for δ ≥ 0.05; a
    zCDP claim is tried where the mechanism's own exact curve has δ ≥ 0.05. Of several, the audit takes the clearest.
    """
    honest, twin = (_laws(specimen, mechanism) for mechanism in (specimen.mechanism, specimen.twin))
    best, sight, most = None, 0.0, 0.0
    for epsilon, delta, bounds in _claims(specimen, honest):
        ratio = twin.epsilon(delta) / epsilon if bounds == "epsilon" else twin.delta(epsilon) / delta
        most = max(most, ratio)
        if ratio < TWIN * (1 - _WITHIN):
            continue
        if delta == 0 and ratio > TWIN * (1 + _WITHIN) and not specimen.loose:
            raise _fault(specimen, f"the twin loses {ratio:.4g} times the claim; {TWIN} is what an audit has to see")
        seen = twin.standard_errors(epsilon=epsilon, delta=delta, bounds=bounds)
        if seen > sight:
            best, sight = (epsilon, delta, bounds), seen
    if best is None:
        raise _fault(specimen, f"the twin loses only {most:.4g} times the claim instead of {TWIN}")
    needed = 10_000 * max(1, math.ceil((_SIGHT / sight) ** 2 / 10_000))
    allowed = 1_000_000 if specimen.large else 400_000
    if needed > allowed:
        raise _fault(specimen, f"an audit would need {needed} draws to see the twin, more than {allowed}")
    epsilon, delta, bounds = best
    return Trial(epsilon=epsilon, delta=delta, bounds=bounds, samples=needed)


def _claims(specimen: "Specimen", honest: Laws) -> list[tuple[float, float, str]]:
    event = specimen.mechanism.event
    failure = float(event.failure)
    if event.epsilon is not None:
        claim = float(event.epsilon)
        in_delta = [(claim, failure, "delta")] if failure >= _LEAST_DELTA else []
        return [(claim, failure, "epsilon"), *in_delta]
    grid = [(epsilon, honest.delta(epsilon)) for epsilon in (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)]
    return [(epsilon, delta, "delta") for epsilon, delta in grid if delta >= _LEAST_DELTA]


def _laws(specimen: "Specimen", mechanism: Any) -> Laws:
    return Laws.of(mechanism, specimen.pair, specimen.outputs)


def _within(specimen: "Specimen", loss: float, claim: float, words: str) -> tuple[float, str]:
    line = f"exact loss {loss:.9g} of the claimed {words}"
    if not loss <= claim + _ROUNDING:
        raise _fault(specimen, f"the claim is broken: {line}")
    return loss / claim, line


def _fault(specimen: "Specimen", sentence: str) -> ConformanceError:
    return ConformanceError(f"{specimen.name}: {sentence}.", specimen=specimen.name)
