"""Two anonymised releases about the same people, held side by side: each hides a person, both together do not.

Anonymity does not compose. A person who is in both releases has one of the conditions that both of their groups share.

Ref: Ganta, Kasiviswanathan, Smith 2008.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubbub.attack.columns import columns_of, pick
from hubbub.attack.finding import AttackFinding
from hubbub.attack.generalised import GeneralizedValue, region
from hubbub.errors import ParameterError

Row = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseGroup:
    """Rows of a release that look alike, and the conditions in them."""

    shown: tuple[str, ...]
    regions: tuple[GeneralizedValue, ...]
    conditions: tuple[str, ...]

    def fits(self, person: Sequence[Any]) -> bool:
        """Return True if a person with these values (None: not known) can be in the group."""
        return all(one.contains(value) for one, value in zip(self.regions, person, strict=True))

    def meets(self, other: "ReleaseGroup") -> bool:
        """Return True if one person can be in both groups."""
        return all(one.meets(two) for one, two in zip(self.regions, other.regions, strict=True))

    def __str__(self) -> str:
        return " ".join(self.shown)


def groups_of(table: Any, *, on: Sequence[str], sensitive: str) -> list[ReleaseGroup]:
    """The groups of a release, in the order in which they appear."""
    columns = columns_of(table)
    held: dict[tuple[str, ...], list[str]] = {}
    secrets = pick(columns, [sensitive], what="sensitive")
    for key, (secret,) in zip(pick(columns, on, what="on"), secrets, strict=True):
        held.setdefault(tuple("*" if one is None else str(one) for one in key), []).append(str(secret))
    return [
        ReleaseGroup(shown=key, regions=tuple(region(one) for one in key), conditions=tuple(conditions))
        for key, conditions in held.items()
    ]


def candidates(groups: Sequence[ReleaseGroup], person: Sequence[Any]) -> set[str]:
    """The conditions that a release leaves for somebody who is in it."""
    return {condition for group in groups if group.fits(person) for condition in group.conditions}


def composition(
    first: Any, second: Any, *, on: Sequence[str], sensitive: str, person: Mapping[str, Any] | None = None
) -> AttackFinding:
    """Hold two releases side by side: for one person of whom something is known, or for everybody who is in both."""
    one = groups_of(first, on=on, sensitive=sensitive)
    two = groups_of(second, on=on, sensitive=sensitive)
    return _of_everybody(one, two) if person is None else _of_one(one, two, on=on, person=person)


def _of_one(
    one: list[ReleaseGroup], two: list[ReleaseGroup], *, on: Sequence[str], person: Mapping[str, Any]
) -> AttackFinding:
    strange = [name for name in person if name not in on]
    if strange:
        raise ParameterError("person", f"what is known of {', '.join(on)}", strange[0])
    known = [person.get(name) for name in on]
    alone, beside = candidates(one, known), candidates(two, known)
    both = sorted(alone & beside)
    told = ", ".join(f"{name} {value}" for name, value in person.items()) or "anybody"
    pinned = len(both) == 1 < min(len(alone), len(beside))
    if not both:
        verdict = f"Nobody with {told} can be in both releases with one condition."
    elif pinned:
        verdict = f"Whoever has {told} and is in both releases has {both[0]}; neither release alone says so."
    elif len(both) == 1:
        verdict = f"Whoever has {told} has {both[0]}; one of the releases says so by itself."
    else:
        verdict = f"Whoever has {told} and is in both releases has one of: {', '.join(both)}."
    return AttackFinding(
        title="Two anonymised releases, side by side",
        verdict=verdict,
        works=len(both) == 1,
        notes=("Taken as given: the person is in both, with the same condition.",),
        columns=("what is left by", "conditions", "which"),
        rows=tuple(
            (name, str(len(left)), ", ".join(sorted(left)))
            for name, left in (("the first release", alone), ("the second release", beside), ("both", set(both)))
        ),
        numbers={"first": len(alone), "second": len(beside), "both": len(both)},
        draw=partial(_draw, [("first", len(alone)), ("second", len(beside)), ("both", len(both))]),
    )


def _of_everybody(one: list[ReleaseGroup], two: list[ReleaseGroup]) -> AttackFinding:
    rows, pinned, possible = [], 0, 0
    for first in one:
        for second in two:
            left = sorted(set(first.conditions) & set(second.conditions))
            if not left or not first.meets(second):
                continue
            possible += 1
            told = len(left) == 1 < min(len(set(first.conditions)), len(set(second.conditions)))
            pinned += told
            rows.append((str(first), str(second), ", ".join(left), "←" * told))
    return AttackFinding(
        title="Two anonymised releases, side by side",
        verdict=f"In {pinned} of {possible} ways of being in both releases, the condition of a person is found out."
        if pinned
        else "No way of being in both releases tells a condition that one of them had kept.",
        works=pinned > 0,
        notes=("Taken as given: who is in both has the same condition in both.",),
        columns=("group of the first", "group of the second", "conditions left", "found out"),
        rows=tuple(rows),
        numbers={"ways": possible, "pinned": pinned},
        draw=partial(_draw, [(f"{row[0]} / {row[1]}", row[2].count(",") + 1) for row in rows]),
    )


def _draw(left: list[tuple[str, int]], axes: Any) -> None:
    colours = ["crimson" if count == 1 else "steelblue" for _, count in left]
    axes.barh([name for name, _ in left], [count for _, count in left], color=colours)
    axes.invert_yaxis()
    axes.set_xticks(range(max((count for _, count in left), default=0) + 1))
    axes.set_xlabel("conditions that are left")


LECTURE = ("zip", "age", "nationality")
"""What an attacker may know, in the tables of the lecture notes."""
HOSPITALS = ("age", "gender")
"""The same, in the tables of the two hospitals."""


def _rows(names: Sequence[str], sensitive: str, *groups: tuple[str, str]) -> list[Row]:
    """From 'key key…' and 'condition, condition…'."""
    return [
        dict(zip(names, key.split(), strict=True)) | {sensitive: condition}
        for key, conditions in groups
        for condition in conditions.split(", ")
    ]


def lecture() -> tuple[list[Row], list[Row]]:
    """Two releases of a lecture on differential privacy (Smith): one is 4-anonymous, the other 6-anonymous."""
    four = _rows(
        LECTURE,
        "condition",
        ("130** <30 *", "AIDS, Heart Disease, Viral Infection, Viral Infection"),
        ("130** ≥40 *", "Cancer, Heart Disease, Viral Infection, Viral Infection"),
        ("130** 3* *", "Cancer, Cancer, Cancer, Cancer"),
    )
    six = _rows(
        LECTURE,
        "condition",
        ("130** <35 *", "AIDS, Tuberculosis, Flu, Tuberculosis, Cancer, Cancer"),
        ("130** ≥35 *", "Cancer, Cancer, Cancer, Tuberculosis, Viral Infection, Viral Infection"),
    )
    return four, six


def hospitals() -> tuple[list[Row], list[Row]]:
    """Two hospitals' releases (McSherry): a man of twenty went to both."""
    first = _rows(HOSPITALS, "diagnosis", ("30s *", "Flu, Flu, Flu"), ("* Male", "STD, HIV, Dead"))
    second = _rows(HOSPITALS, "diagnosis", ("20s Male", "Flu, Flu, HIV"), ("* *", "Flu, Lupus, Gout"))
    return first, second
