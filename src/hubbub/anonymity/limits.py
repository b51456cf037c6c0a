"""The limits of every definition of this kind. Every report ends with them."""

ALWAYS = (
    "Not covered: a second release about the same people. Two tables that are each anonymous can pin a person down "
    "together (hubbub attack composition).",
    "Not covered: whoever knows more than the columns that were named. Another column, or a fact about one person, "
    "splits a group.",
    "Not covered: that somebody is in the table at all.",
    "Not covered: what the way of making the table tells. That no finer table was allowed is itself a fact about "
    "its rows.",
    "There is no bound on what can be learned about one person. Questions through a budget have one (hubbub query).",
)
_NO_SENSITIVE = (
    "Not covered: what the rows of a group have in common. No sensitive column was named, so none was looked at."
)
_K_ALONE = "Not covered: a group whose rows all say the same tells it about everybody in it, however large it is."
_DIVERSE = (
    "Not covered: values that differ in name only (two kinds of one illness), and groups in which a rare value is much "
    "commoner than among all."
)
_CLOSE = "Not covered: what is true of all rows; and a group may differ from all by as much as t for everybody in it."


def not_covered(*, sensitive: bool, diverse: bool, close: bool) -> tuple[str, ...]:
    """List the risks that a guarantee leaves open: more, the less was examined or asked for. It is never empty."""
    first = [] if sensitive else [_NO_SENSITIVE]
    if sensitive and not diverse and not close:
        first.append(_K_ALONE)
    if diverse and not close:
        first.append(_DIVERSE)
    if close:
        first.append(_CLOSE)
    return (*first, *ALWAYS)
