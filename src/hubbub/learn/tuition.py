"""The budget of one fit, and the one way it is spent: through the gate, in shares that are fixed before data is seen.

Privacy:
    Claim: everything a fit learns is (ε, δ)-DP for its whole table, a unit being a row or, with ``groups``, a person.
    Proof: each measurement is calibrated for its share w of ε (pure: δ = 0), or of a ρ that converts into (ε, δ); the
        shares handed out sum to at most 1 (``spend`` refuses more), and pure losses and ρ add up under adaptive
        composition. The gate checks each mechanism against the sensitivity that the crowd and the steps prove.
    Needs: shares, shapes and branches that depend on parameters and earlier releases alone (SOUNDNESS 16).
    Ref: Dwork, McSherry, Nissim, Smith 2006; Bun, Steinke 2016.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from hubbub.errors import AccountingError, EngineError, HubbubError, ParameterError
from hubbub.gate.attempt import attempt
from hubbub.gate.measurement import Measurement
from hubbub.gate.meter import Meter
from hubbub.gate.release import Release
from hubbub.gate.secret import Sealed
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import Steps
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.additive.added import AddedNoise
from hubbub.mechanisms.base import Mechanism
from hubbub.parameters import Real, positive, probability, rational
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Budget, whole_units_rounded_down
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.query.totals import SumsRequest

T = TypeVar("T")
ACCOUNT = "learning"


@dataclass(slots=True, kw_only=True)
class Tuition:
    """The price of one fit and what was bought with it so far. Units are added or removed."""

    epsilon: Fraction
    delta: Fraction
    meter: Meter
    account: str = ACCOUNT
    guards: bool = True
    """Whether failures are told and counted here; not where a session does so for the whole fit."""
    left: Fraction = Fraction(1)
    """The share of the price that is not yet handed out."""
    releases: list[Release] = field(default_factory=list)
    useless: bool = False
    """Whether noise is found to be as large as what was to be learned, by public numbers."""
    refused: HubbubError | None = None
    """What the gate refused, or could not answer, last."""

    @classmethod
    def at(
        cls,
        *,
        epsilon: Real,
        delta: Real = 0,
        meter: Meter | None = None,
        account: str = ACCOUNT,
        guards: bool = True,
    ) -> "Tuition":
        """Without a meter nobody keeps count over several fits: (ε, δ) is the price of this one alone."""
        price = whole_units_rounded_down(positive("epsilon", epsilon))
        slack = probability("delta", delta) if delta else Fraction(0)
        if meter is None:
            ample = Budget(epsilon=price + 1024, delta=Fraction(1, 2) if slack else Fraction(0))
            meter = Meter({account: ample})
        if not isinstance(meter, Meter):
            raise ParameterError("meter", "a Meter, such as that of a session", type(meter).__name__)
        return cls(epsilon=price, delta=slack, meter=meter, account=account, guards=guards)

    @property
    def price(self) -> str:
        """For a person."""
        return f"ε = {float(self.epsilon):.6g}" + (f", δ = {float(self.delta):.3g}" if self.delta else "")

    @property
    def rho(self) -> Fraction | None:
        """The zCDP price; None where δ is 0 and losses are counted in ε.

        As accounts do, it takes half of δ for the conversion; the other half is for what may fail (``failure``).
        """
        return rho_rounded_down(self.epsilon, self.delta / 2) if self.delta else None

    def spend(self, share: Real) -> Fraction:
        """Take a share of the price. What it buys is ``pure(share)`` or ``concentrated(share)``."""
        part = rational("share", share)
        if not 0 < part <= self.left:
            raise AccountingError(f"A fit asked for {part} of its price with {self.left} left.")
        self.left -= part
        return part

    def pure(self, part: Fraction) -> Fraction:
        """The ε that a share buys where losses are counted in ε."""
        return whole_units_rounded_down(self.epsilon * part)

    def selection(self, part: Fraction) -> Fraction:
        """The ε of a release of bounded range (exponential mechanism) that a share buys: its ρ is ε²/8."""
        if self.rho is None:
            return self.pure(part)
        root = Fraction(float(self.rho * part * 8) ** 0.5) * Fraction((1 << 40) - 1, 1 << 40)
        return whole_units_rounded_down(root)

    def additive(self, part: Fraction, sensitivity: Sensitivity) -> Geometric | Gaussian:
        """The noise that a share buys for a vector of whole numbers: geometric if pure, Gaussian with a δ."""
        noise, rho = AddedNoise(sensitivity=sensitivity, neighbors=Neighbors.ADD_REMOVE), self.rho
        if rho is None:
            return noise.calibrate_pure(self.pure(part))
        # Whole units of an account: what several shares are charged is then no more than what all of them are.
        return noise.calibrate_zcdp(whole_units_rounded_down(rho * part))

    def measure(
        self,
        mechanism: Mechanism,
        sealed: Sealed[Any],
        sensitivity: Sensitivity,
        *,
        grid: Fraction | None,
        label: str,
    ) -> Any:
        """Measure an exact value through the gate and return what is public of it.

        What computes the value runs after it is paid for, so that a failure is counted. The caller took its share by
        ``spend``.
        """
        measured = Measurement(
            mechanism=mechanism, sensitivity=sensitivity, take=_take_all, grid=grid, label=label
        )  # fmt: skip
        try:
            release = measured.measure(sealed, self.meter, account=self.account, neighbors=Neighbors.ADD_REMOVE)
        except HubbubError as refused:
            self.refused = refused
            raise
        self.releases.append(release)
        return release.value

    def measure_sums(
        self, data: Features, sums: SumsRequest, steps: Steps, *, share: Real, label: str
    ) -> tuple[Array, Geometric | Gaussian]:
        """Return noisy sums, those of all families one after the other, and their noise.

        ``steps`` bound what one row adds to all of them together.
        """
        reach = reach_of(steps, data)
        mechanism = self.additive(self.spend(share), reach)
        sealed = data.add_up(sums).map(lambda exact: np.concatenate([one.reshape(-1) for one in exact]))
        noisy = self.measure(mechanism, sealed, reach, grid=steps.grid, label=label)
        return np.asarray(noisy, dtype=np.float64), mechanism

    def guard(self, work: Callable[[], T]) -> T:
        """Run what looks at rows: whatever it raises is the one fixed error, without text, cause or context.

        Privacy:
            Claim: how the work fails is told by EngineError alone, and after a payment it counts as a failure.
            Proof: what the gate refuses (a budget, an account, a mechanism that does not fit) follows from accounts and
                parameters, and passes; what fails in the gate was counted there. Anything else raised between two
                measurements ends here, is counted against the last payment, and goes to the owner's log. Warnings of
                arithmetic, which would tell of a value on another way, are off.
            Needs: ``attempt``; parameters that were checked before.
            Ref: SOUNDNESS 35.
        """
        if not self.guards:
            return work()

        def quietly() -> T:
            with np.errstate(all="ignore"):
                return work()

        made, failed = attempt(quietly, log=self._note)
        refused, self.refused = self.refused, None
        if not failed:
            return made  # type: ignore[return-value]
        if refused is not None and not isinstance(refused, EngineError):
            raise refused
        if refused is None and self.releases:
            self.meter.count_failure(self.releases[-1])
        raise EngineError

    def _note(self, problem: str) -> None:
        """Tell the owner of a failure, and not of a refusal."""
        if self.refused is None and self.meter.log is not None:
            self.meter.log(problem)

    def count(self, data: Features, *, share: Real, label: str = "number of rows") -> float:
        """Return a noisy number of rows (each unit counts for at most ``most``), at least 1 (SOUNDNESS 16)."""
        ones = Steps(grid=Fraction(1), l1=1, l2_squared=1, linf=1, l0=1)
        reach = reach_of(ones, data)
        mechanism = self.additive(self.spend(share), reach)
        noisy = self.measure(mechanism, data.count(), reach, grid=ones.grid, label=label)
        return max(1.0, float(noisy[0]))


def _take_all(exact: Any) -> Any:
    return exact


def reach_of(steps: Steps, data: Features) -> Sensitivity:
    """Return how far one unit can move the total."""
    most = data.most
    return Sensitivity(
        l0=steps.l0 if data.single else None,
        l1=Fraction(most * steps.l1),
        l2_squared=Fraction(most * most * steps.l2_squared),
        linf=Fraction(most * steps.linf),
    )
