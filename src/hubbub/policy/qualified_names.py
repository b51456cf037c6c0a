"""The name of a column together with its table: one text for each pair of the two, to compare or to show.

Nothing takes such a name apart again. Whoever needs the column of a table carries it beside the name, as a scan does
(``query.ops.ScanColumn``).
"""


def qualify(source: str, column: str) -> str:
    """Name a column of a table, or of whatever else has columns, differently for every pair of the two.

    Ordinary names are joined by a dot. A part that has a dot or a double quote itself is quoted, as in SQL.

    Claim: different pairs have different names, and every name has a dot.
    Proof: read a name from the left. If it begins with a quote, its first part was quoted and ends at the first quote
        that is not doubled; otherwise the first part has no dot and ends at the first one. What follows that dot is
        the second part, in one of the same two forms. So there is one pair that a name can have been made of.
    """
    return f"{_part(source)}.{_part(column)}"


def _part(text: str) -> str:
    if "." not in text and '"' not in text:
        return text
    return '"' + text.replace('"', '""') + '"'
