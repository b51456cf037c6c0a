"""Letters and what they become in another case, one for one, for servers whose own tables differ from version to
version.

A letter that becomes several stays, but for ß, which has a capital of its own, and İ, whose small letter is i.
"""

_PLANES = 0x20000
"""Letters of two cases are in the first two planes of Unicode."""


def _lower(letter: str) -> str:
    return "i" if letter == "İ" else letter.lower() if len(letter.lower()) == 1 else letter


def _upper(letter: str) -> str:
    choices = ("ẞ" if letter == "ß" else letter.upper(), letter.title(), letter)
    return next(choice for choice in choices if len(choice) == 1)


def _pair_letters() -> tuple[tuple[str, str], tuple[str, str]]:
    letters = [chr(code) for code in range(0x41, _PLANES)]
    lower = [(one, _lower(one)) for one in letters if one.lower() != one]
    upper = [(one, _upper(one)) for one in letters if one.upper() != one]
    return _split(lower), _split(upper)


def _split(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    changed = [(one, other) for one, other in pairs if one != other]
    return "".join(one for one, _ in changed), "".join(other for _, other in changed)


LOWER, UPPER = _pair_letters()
"""Letters, and what each becomes, place by place."""
