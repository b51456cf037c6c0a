"""Operations on reals that never raise, for an engine that raises where IEEE 754 gives infinity or zero.

PostgreSQL raises where a result of finite reals is infinite, where it is zero though no argument is, and where a
divisor is zero or a logarithm's argument not above it. Here each result is what IEEE 754 says, and missing where that
is not finite: the arguments are looked at first, and scaled by powers of two, which is exact, where the ends of what a
real can hold are near.

Proof of totality, for magnitudes A and B:
    - Of constant parts the planner computes what it likes, before any row is read. It looks at the condition of a CASE
      first, and drops a branch whose condition is constant and false; so a part of constants is only computed where its
      condition, which is then constant too, holds.
    - a ± b: the sum of two magnitudes below 2^1023 is finite. Less than 2^970 moves no finite real to infinity, since
      it is less than half of the last place of the greatest. Otherwise halves are added, which are exact from 2^970
    on.
    - a · b: where one is at least 1 and the other below, the product lies between them. Both at least 1: it may
      overflow alone, as AB · 2^-1024 < 1 decides, whose parts are at least 2^-512. Both below 1: it may underflow
    alone, which
      it does if AB ≤ 2^-1075; where both are below 2^-540 it does, otherwise AB · 2^1024 lies between 2^-590 and
      2^1024.
    - a / b: alike, with B turned over. Both at least 1: between 2^-1024 and 2^1024. Both below 1: at least A, and it
      may overflow where B is below 2^-1022; B · 2^200 decides.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence

from hubbub.engines.dialects.dialect import Domain
from hubbub.engines.nodes.scalars import Beyond, Constant, Function, Operator, Scalar
from hubbub.engines.nodes.words import case, cast, constant, function, infix, text
from hubbub.policy.kinds import Type, of

_REAL = of(Type.REAL)
_MOST = 709.7827
"""Below the logarithm of the greatest real by 10^-5, so that no library's last bits matter."""
_LEAST = -745.0
"""Where exp comes below twice the least real."""
_FAR = 500
"""Reals of magnitudes up to 2 to this, and down to its inverse, can be multiplied and divided without looking
further."""


def _real(value: float) -> Scalar:
    return constant(value, _REAL)


def _power(exponent: int) -> Scalar:
    return _real(math.ldexp(1.0, exponent))


def _size(value: Scalar) -> Scalar:
    return function("abs", value)


def _times(value: Scalar, exponent: int) -> Scalar:
    return infix("*", value, _power(exponent))


def _is_below(value: Scalar, exponent: int) -> Scalar:
    return infix("<", value, _power(exponent))


def _is_from(value: Scalar, exponent: int) -> Scalar:
    return infix(">=", value, _power(exponent))


def _both(*conditions: Scalar) -> Scalar:
    return infix("and", *conditions)


def _is_moderate(size: Scalar) -> Scalar:
    return _both(_is_from(size, -_FAR), infix("<=", size, _power(_FAR)))


def _is_zero(value: Scalar) -> Scalar:
    return infix("=", value, _real(0.0))


_ZERO = _real(0.0)


def _sum(operator: Operator) -> Domain:
    def build(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
        whole = infix(operator, *given)
        if beyond == "never":
            return whole
        first, second = map(_size, given)
        halves = infix(operator, *(infix("*", one, _real(0.5)) for one in given))
        return case(
            (_both(_is_below(first, 1023), _is_below(second, 1023)), whole),
            (infix("or", _is_below(first, 970), _is_below(second, 970)), whole),
            (_is_below(_size(halves), 1023), whole),
            otherwise=_infinity(halves) if beyond == "infinite" else None,
        )

    return build


def _multiply(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    left, right = given
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right = right, left
    if isinstance(right, Constant) and not isinstance(left, Constant):
        return _scale("*", left, right, beyond=beyond)
    product = infix("*", *given)
    first, second = map(_size, given)
    return case(
        (_both(_is_moderate(first), _is_moderate(second)), product),
        (infix("or", _is_zero(first), _is_zero(second)), product),
        (
            _both(_is_from(first, 0), _is_from(second, 0)),
            case(
                (infix("<", infix("*", _times(first, -512), _times(second, -512)), _real(1.0)), product),
                otherwise=_infinity(*given) if beyond == "infinite" else None,
            ),
        ),
        (
            _both(_is_below(first, 0), _is_below(second, 0)),
            case(
                (_both(_is_below(first, -540), _is_below(second, -540)), _ZERO),
                (infix(">", infix("*", _times(first, 512), _times(second, 512)), _power(-51)), product),
                otherwise=_ZERO,
            ),
        ),
        otherwise=product,
    )


def _divide(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    left, right = given
    if isinstance(right, Constant) and not isinstance(left, Constant):
        return _scale("/", left, right, beyond=beyond)
    quotient = infix("/", *given)
    sign = case((infix("<", right, _ZERO), _real(-1.0)), otherwise=_real(1.0))
    beyond_it = _infinity(left, sign) if beyond == "infinite" else constant(None, _REAL)
    first, second = map(_size, given)
    return case(
        (_both(_is_moderate(first), _is_moderate(second)), quotient),
        (_is_zero(second), beyond_it),
        (_is_zero(first), quotient),
        (_both(_is_from(first, 0), _is_from(second, 0)), quotient),
        (
            _both(_is_below(first, 0), _is_below(second, 0)),
            case(
                (_is_from(second, -1022), quotient),
                (_is_below(infix("/", first, _times(second, 200)), 824), quotient),
                otherwise=beyond_it,
            ),
        ),
        (
            _both(_is_from(first, 0), _is_below(second, 0)),
            case(
                (_both(_is_from(first, 500), _is_below(second, -524)), beyond_it),
                (infix("<", infix("/", _times(first, -512), _times(second, 512)), _real(1.0)), quotient),
                otherwise=beyond_it,
            ),
        ),
        (
            _both(_is_below(first, 0), _is_from(second, 0)),
            case(
                (_both(_is_below(first, -540), infix(">", second, _power(540))), _ZERO),
                (infix(">", infix("/", _times(first, 512), _times(second, -512)), _power(-51)), quotient),
                otherwise=_ZERO,
            ),
        ),
    )


def _scale(operator: Operator, value: Scalar, by: Constant, *, beyond: Beyond) -> Scalar:
    """Multiply by or divide by a constant, of which it is known beforehand where that goes wrong."""
    scaled = infix(operator, value, by)
    if not isinstance(by.value, float):
        return constant(None, _REAL)
    if by.value == 0.0 and operator == "/":
        return _infinity(value) if beyond == "infinite" else constant(None, _REAL)
    if by.value == 0.0:
        return scaled
    least, most = find_ends(operator, abs(by.value))
    size = _size(value)
    pairs: list[tuple[Scalar, Scalar]] = []
    if least > _TINY:
        pairs.append((infix("<", size, _real(least)), _ZERO))
    if most < _GREATEST and beyond != "never":
        pairs.append((infix("<=", size, _real(most)), scaled))
        signed = _infinity(value) if by.value > 0.0 else _infinity(value, _real(-1.0))
        return case(*pairs, otherwise=signed if beyond == "infinite" else None)
    return case(*pairs, otherwise=scaled) if pairs else scaled


_TINY, _GREATEST = math.ldexp(1.0, -1074), math.nextafter(math.inf, 0.0)


def find_ends(operator: Operator, by: float) -> tuple[float, float]:
    """Return the least and the greatest magnitude whose product with a constant, or quotient, is neither 0 nor
    infinite."""

    def bits(value: float) -> int:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])

    def real(pattern: int) -> float:
        return float(struct.unpack("<d", struct.pack("<q", pattern))[0])

    def find(holds: Callable[[float], bool]) -> float:
        """Find the first magnitude for which it holds, and all above."""
        low, high = bits(_TINY), bits(math.inf)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(real(middle)) else (middle + 1, high)
        return real(low)

    def apply(value: float) -> float:
        return value * by if operator == "*" else value / by

    return find(lambda one: apply(one) != 0.0), math.nextafter(find(lambda one: math.isinf(apply(one))), 0.0)


def _infinity(*signs: Scalar) -> Scalar:
    """Give infinity the product of these signs; it is no number where one of them is zero or none."""
    infinity = cast(text("Infinity"), "real")
    return infix("*", *(function("sign", one) for one in signs), infinity)


def _sqrt(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    return case((infix(">=", given[0], _ZERO), function("sqrt", given[0])))


def _ln(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    return case((infix(">", given[0], _ZERO), function("ln", given[0])))


def _log2(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    return case((infix(">", given[0], _ZERO), function("log2", given[0])))


def _exp(given: Sequence[Scalar], beyond: Beyond) -> Scalar:
    return case(
        (infix("<", given[0], _real(_LEAST)), _ZERO),
        (infix("<=", given[0], _real(_MOST)), function("exp", given[0])),
    )


DOMAINS: Mapping[Function | Operator, Domain] = {
    "+": _sum("+"),
    "-": _sum("-"),
    "*": _multiply,
    "/": _divide,
    "sqrt": _sqrt,
    "ln": _ln,
    "exp": _exp,
    "log2": _log2,
}
