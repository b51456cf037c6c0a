"""Numbers of a TOML file at the value that was written: 0.1 is 1/10, not the nearest float."""

import re
from fractions import Fraction

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?")


class DecimalText(Fraction):
    """The exact value of a decimal, which errors show as it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "DecimalText":
        """Exactly what the digits say."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def exact(text: str) -> DecimalText | float:
    """A TOML float. What is not finite, or far beyond a DOUBLE, becomes inf or NaN, which every check refuses."""
    plain = text.replace("_", "")
    found = _NUMBER.fullmatch(plain)
    if found is None or len(plain) > 400 or abs(int(found[1] or 0)) > 400:
        return float("nan") if "nan" in plain else float("inf")
    return DecimalText(plain)
