"""The rate at which an attack is right, beside the rate of somebody who has not seen the release.

A share alone says little: 60% of a thousand fair bits is a leak, 100% of five is luck, and 95% is nothing where 95% of
people share the value. What decides is how likely luck alone makes so many guesses right.

Claim: without a leak, an attack is called better than chance with probability at most ``LEVEL``.
Proof: each constructor below computes, or bounds from above, the probability that guesses which are independent of the
    secrets are right as often (a one-sided p-value). If the best of several tries is reported, the smallest p-value is
    multiplied by their number (Bonferroni).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import minimize_scalar
from scipy.stats import betabinom, binom

Record = tuple[str, ...]
LEVEL = 1e-6
"""The p-value from which on an attack is said to work. Chosen as the false-alarm rate of this project's tests: whoever
attacks every release of a day meets a false alarm in no lifetime, and 20 fair bits are enough to be sure. A larger one
calls smaller leaks by their name, and luck more often a leak."""
_STEEPEST = 30.0
"""The largest λ that is tried; the bound holds for every one, and exp(30) times a probability is hardly more than the
term of all right alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """Guesses that were right, out of how many, and what that is worth."""

    right: int
    trials: int
    chance: float
    """The share that is right without the release, at best."""
    p_value: float
    """The probability that luck alone makes so many guesses right, or an upper bound of it."""
    least_p_value: float
    """The same if all guesses were right: above ``LEVEL`` there are too few of them to tell."""

    @property
    def share(self) -> float:
        """Of guesses that were right."""
        return self.right / self.trials

    @property
    def is_better(self) -> bool:
        """True if luck is ruled out, at ``LEVEL``."""
        return self.p_value <= LEVEL

    @property
    def is_decidable(self) -> bool:
        """True if there are enough guesses to rule luck out at all."""
        return self.least_p_value <= LEVEL

    @property
    def beside_chance(self) -> str:
        """Return the end of a sentence that begins with the share."""
        if self.is_better:
            return f", and {self.chance:.1%} by chance"
        return f": {self.verdict}, which is {self.chance:.1%}"

    @property
    def verdict(self) -> str:
        """Return what the numbers say, in a few words."""
        if self.is_better:
            return "better than chance"
        return "not significantly better than chance" if self.is_decidable else "too few guesses to tell from chance"

    def __str__(self) -> str:
        sentence = (
            f"{self.right:,} of {self.trials:,} guesses are right ({self.share:.1%}); without the release "
            f"{self.chance:.1%} would be. Luck alone does as well with p = {_write(self.p_value)}"
        )
        if self.is_better or self.is_decidable:
            return f"{sentence}: {self.verdict} at the level {LEVEL:.0e}."
        return f"{sentence}: {self.verdict} at the level {LEVEL:.0e} (all right: p = {_write(self.least_p_value)})."

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "right": self.right,
            "trials": self.trials,
            "share": self.share,
            "chance": self.chance,
            "p_value": self.p_value,
            "level": LEVEL,
            "is_better": self.is_better,
            "is_decidable": self.is_decidable,
        }


def most_allowed(chance: float, *, epsilon: float) -> float:
    """Return the share of guesses that ε-differential privacy lets be right, on average, where ``chance`` are without.

    Claim: no guess from the release about one of several secrets is right with a greater probability.
    Proof: by Bayes. The release moves the odds of a secret by a factor of at most exp(ε), whatever it shows.
    Needs: ε is for changing one secret into another. That is 2ε of a budget for adding or removing people, unless one
        of the two secrets is counted nowhere.
    """
    return chance * math.exp(epsilon) / (1 + chance * math.expm1(epsilon))


def against_guessing(right: int, *, trials: int, chance: float, tries: int = 1) -> SuccessRate:
    """Compare guesses about secrets with guesses that are each right with probability ``chance`` at most.

    Claim: the p-value is valid for secrets that are independent of each other, and of the guesses.
    Proof: each guess is then right with a probability of at most ``chance``, independently, so that the number of right
        ones is stochastically at most Binomial(trials, chance). If they are right with probability ``chance`` on
        average only, its upper tail is no heavier, from one above the mean on (Hoeffding 1956).
    """
    return SuccessRate(
        right=right,
        trials=trials,
        chance=chance,
        p_value=_several(float(binom.sf(right - 1, trials, chance)), tries),
        least_p_value=_several(float(chance) ** trials, tries),
    )


def against_strangers(above: int, *, members: int, strangers: int, rank: int, tries: int = 1) -> SuccessRate:
    """Compare the number of members whose score is above that of the stranger at a rank (1 is the highest).

    Claim: the p-value is exact for scores without ties, and an upper bound with ties that count as not above.
    Proof: if members score as strangers do, the probability of being above the stranger at rank j of s has the law
        Beta(j, s + 1 - j), and given it the number of members above is binomial: together beta-binomial.
    """
    shape = (rank, strangers + 1 - rank)
    return SuccessRate(
        right=above,
        trials=members,
        chance=rank / (strangers + 1),
        p_value=_several(float(betabinom.sf(above - 1, members, *shape)), tries),
        least_p_value=_several(float(betabinom.pmf(members, members, *shape)), tries),
    )


def against_likely_records(
    guessed: Sequence[Record], truth: Sequence[Record], *, cells: Sequence[Record]
) -> SuccessRate:
    """Compare records that were worked out with guesses of somebody who knows the shares of each attribute.

    Claim: the p-value is an upper bound for true records that are independent of each other and of the guesses, with
        independent attributes of these shares.
    Proof: the people N_c in the cells are multinomial, and so negatively associated; so are min(N_c, g_c), which grow
        with them, and E exp(λ Σ min(N_c, g_c)) is at most the product over the cells (Joag-Dev, Proschan 1983).
        Markov's inequality for any λ then bounds the tail; one that bounds it well is looked for.
    Of m guesses the expected number that is right is greatest for those m copies of cells whose P(N_c >= k) is
    greatest: that is what chance means here.
    """
    people, trials = len(truth), max(len(truth), len(guessed))
    shares = [_shares(column) for column in zip(*truth, strict=True)]
    likely = {cell: math.prod(own.get(value, 0.0) for own, value in zip(shares, cell, strict=True)) for cell in cells}
    copies = [float(p) for share in likely.values() if share for p in binom.sf(range(people), people, share)]

    def bound_p_value(records: Sequence[Record], right: int) -> float:
        held = [(likely[record], many) for record, many in Counter(records).items() if record in likely]
        laws = [[*binom.pmf(range(many), people, share), binom.sf(many - 1, people, share)] for share, many in held]

        def log_bound(rate: float) -> float:
            terms = (math.log(sum(mass * math.exp(rate * k) for k, mass in enumerate(law))) for law in laws)
            return sum(terms) - rate * right

        return min(1.0, math.exp(minimize_scalar(log_bound, bounds=(0, _STEEPEST), method="bounded").fun))

    right = (Counter(guessed) & Counter(truth)).total()
    return SuccessRate(
        right=right,
        trials=trials,
        chance=sum(sorted(copies, reverse=True)[:trials]) / trials,
        p_value=bound_p_value(guessed, right),
        least_p_value=bound_p_value(truth, people),
    )


def _shares(values: Sequence[str]) -> Mapping[str, float]:
    return {value: many / len(values) for value, many in Counter(values).items()}


def _several(p_value: float, tries: int) -> float:
    return min(1.0, p_value * tries)


def _write(p_value: float) -> str:
    return f"{p_value:.2g}" if p_value >= 1e-300 else "0 (below 1e-300)"
