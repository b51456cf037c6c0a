"""The largest ε that can still be asked for, and amounts in words: what people reason about, with ρ beside it.

A question at (ε, δ) is answered if pure noise for ε can be paid for, or Gaussian noise for (ε, δ). So the largest ε is
that of whichever goes further. Gaussian noise of the same ε is cheaper, and of more noise: how much a question would
have is what ``explain`` says.
"""

from fractions import Fraction

from hubbub.errors import AccountingError
from hubbub.privacy import convert, curves
from hubbub.privacy.charge import DELTA_UNIT, LOSS_UNIT, Charge
from hubbub.privacy.filter import PureFilter
from hubbub.privacy.loss import number
from hubbub.privacy.ways import Payer

_HALVINGS = 64
_STEP = 1 - Fraction(1, 1 << 30)
_STEPS = 64


def largest_epsilon(payer: Payer, *, delta: Fraction) -> Fraction:
    """Return an ε, close to the largest, that one question at (ε, δ) can be paid for; 0 where there is none."""
    return max(_largest_pure(payer), _largest_gaussian(payer, delta))


def _largest_pure(payer: Payer) -> Fraction:
    """By halves: what a pure mechanism of any law costs at most grows with its ε."""
    low, high = 0, int(payer.terms.epsilon / LOSS_UNIT) + 1
    for _ in range(_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (middle, high) if payer.room.fits(_pure_charge(payer, middle)) else (low, middle)
    return low * LOSS_UNIT


def _pure_charge(payer: Payer, units: int) -> Charge:
    if isinstance(payer.terms, PureFilter):
        return Charge(loss=units, pure=units)
    rho = curves.response_rho_rounded_up(units * LOSS_UNIT)
    return Charge(loss=-(-rho // LOSS_UNIT), pure=units)


def _largest_gaussian(payer: Payer, delta: Fraction) -> Fraction:
    if isinstance(payer.terms, PureFilter) or delta == 0 or payer.room.loss == 0:
        return Fraction(0)
    left = payer.room.loss * LOSS_UNIT
    found = convert.epsilon_of_rho_rounded_up(left, delta)
    for _ in range(_STEPS):
        try:
            if convert.rho_rounded_down(found, delta) <= left:
                return min(found, payer.terms.epsilon)
        except AccountingError:
            return Fraction(0)
        found *= _STEP
    return Fraction(0)


def tell_room(payer: Payer, *, delta: Fraction, failure: bool = False) -> str:
    """Say what is left: the largest ε that can be asked for, and ρ in brackets."""
    text = f"ε = {number(largest_epsilon(payer, delta=delta))}"
    details = [] if isinstance(payer.terms, PureFilter) else [f"ρ = {number(payer.room.loss * LOSS_UNIT)}"]
    if failure:
        details.append(f"δ₀ = {number(payer.room.failure * DELTA_UNIT)}")
    return f"{text} ({', '.join(details)})" if details else text


def tell_price(payer: Payer, charge: Charge, *, epsilon: Fraction) -> str:
    """Say what is charged: the ε that is used, and ρ in brackets."""
    details = [] if isinstance(payer.terms, PureFilter) else [f"ρ = {number(charge.loss * LOSS_UNIT)}"]
    if charge.failure:
        details.append(f"δ₀ = {number(charge.failure * DELTA_UNIT)}")
    text = f"ε = {number(epsilon)}"
    return f"{text} ({', '.join(details)})" if details else text
