"""Values of every type on which functions and engines change their minds, for tests that choose among them."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from hubbub.policy.kinds import INT64, Type

NAN, INF = float("nan"), float("inf")

GOOD: Mapping[Type, tuple[Any, ...]] = {
    Type.BOOLEAN: (False, True),
    Type.INTEGER: (0, 1, -1, 2, 7, -10, 1000, (1 << 53) + 1, INT64[0], INT64[1]),
    Type.REAL: (
        *(0.0, -0.0, 0.5, 1.5, 2.5, -0.1, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, -1e300),
        *(9007199254740993.0, 9.2233720368547748e18, 9.223372036854775807e18, -9.223372036854775808e18, 710.0),
    ),
    Type.TEXT: (
        *("", " ", "a", "A", "aB%", "_", "\\", "ward", " ward\t", "\u00a0x\u2003", "ß", "İI", "ΑΣ", "ﬁ", "e\u0301"),
        *("\U0001f600", "𝔘a", "'; --", '"', "\x00", "NULL", "%" * 30, "ab" * 600),
    ),
    Type.DATE: (date.min, date.max, date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(2023, 1, 1)),
    Type.TIMESTAMP: (
        datetime.min,
        datetime.max,
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(2024, 2, 29, 12, 30, 15, 1),
        datetime(2024, 12, 30, 0, 0, 0),
    ),
}
"""Values that a kind may hold, at the ends and where functions change their minds."""

POISON: Mapping[Type, tuple[Any, ...]] = {Type.REAL: (NAN, INF, -INF)}
"""Values that a source may hold and no kind may: a scan makes them missing."""
