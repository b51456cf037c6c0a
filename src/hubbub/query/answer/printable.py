"""Other people's words, without what a terminal would act on."""

import unicodedata

_BREAKS = "\u2028\u2029"


def clean(text: str) -> str:
    """Text without anything that a terminal would act on."""
    return "".join("�" if unicodedata.category(one)[0] == "C" or one in _BREAKS else one for one in text)
