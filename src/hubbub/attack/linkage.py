"""Names put back on a table without names: what somebody knows of people picks out their rows.

A combination of a few ordinary facts is a name where nobody else has it. The two figures that matter are how many
people are alone with their combination, and how many rows of the release a list with names finds again.

Ref: Sweeney 2000 (zip code, sex and date of birth); Narayanan, Shmatikov 2008.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from hubbub.attack.columns import Columns, columns_of, pick
from hubbub.attack.finding import AttackFinding
from hubbub.attack.generalised import region
from hubbub.errors import ParameterError

Key = tuple[Any, ...]
SMALL = 5
"""People in groups of two to so many are found with a little more knowledge."""
_MOST_COMBINATIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The uniqueness of people by a combination of facts."""

    on: tuple[str, ...]
    people: int
    groups: int
    unique: int
    small: int
    """People in groups of 2 to 5."""

    @property
    def share(self) -> float:
        """Of the people who are alone."""
        return self.unique / self.people if self.people else 0.0


def uniqueness(table: Any, *, quasi: Sequence[str], most: int | None = None) -> list[Uniqueness]:
    """For each combination of up to ``most`` of the columns, the ones that single out most people first."""
    columns = columns_of(table)
    pick(columns, quasi, what="quasi")
    widest = len(quasi) if most is None else min(most, len(quasi))
    chosen = [some for width in range(1, widest + 1) for some in combinations(quasi, width)]
    if len(chosen) > _MOST_COMBINATIONS:
        raise ParameterError("most", f"so small that there are at most {_MOST_COMBINATIONS:,} combinations", most)
    found = [_uniqueness(columns, some) for some in chosen]
    return sorted(found, key=lambda one: (-one.unique, len(one.on)))


def _uniqueness(columns: Columns, on: tuple[str, ...]) -> Uniqueness:
    sizes = Counter(pick(columns, on, what="quasi"))
    return Uniqueness(
        on=on,
        people=sum(sizes.values()),
        groups=len(sizes),
        unique=sum(1 for size in sizes.values() if size == 1),
        small=sum(size for size in sizes.values() if 2 <= size <= SMALL),
    )


def unique_people(table: Any, *, quasi: Sequence[str], most: int | None = None) -> AttackFinding:
    """Report the uniqueness of rows to whoever knows these columns of somebody."""
    found = uniqueness(table, quasi=quasi, most=most)
    everything = max(found, key=lambda one: (len(one.on), one.unique))
    shown = [(" + ".join(one.on), one) for one in found]
    return AttackFinding(
        title=f"Who is alone with {', '.join(quasi)}",
        verdict=f"{everything.unique:,} of {everything.people:,} people ({everything.share:.1%}) are alone with their "
        f"{' + '.join(everything.on)}.",
        works=everything.unique > 0,
        notes=(f"{everything.small:,} more are in groups of 2 to {SMALL}.",),
        columns=("known", "groups", "alone", f"in groups of 2–{SMALL}", "share alone"),
        rows=tuple(
            (name, f"{one.groups:,}", f"{one.unique:,}", f"{one.small:,}", f"{one.share:.1%}") for name, one in shown
        ),
        numbers={"people": everything.people, "unique": everything.unique, "small": everything.small},
        draw=partial(_draw, [(name, one.share, one.small / max(1, one.people)) for name, one in shown[:12]]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """One person of the list with names: how many rows may be theirs, and what these rows say."""

    name: str
    rows: int
    secrets: tuple[str, ...]
    shared_by: int
    """People of the list for whom the same rows come into question."""

    @property
    def is_found(self) -> bool:
        """True if one row is left, and it fits nobody else."""
        return self.rows == 1 and self.shared_by == 1

    @property
    def is_revealed(self) -> bool:
        """True if all the rows that are left have the same secret."""
        return self.rows > 0 and len(self.secrets) == 1


def link(released: Any, known: Any, *, on: Sequence[str], name: str, sensitive: str) -> list[Linked]:
    """Look everybody of a list up in a release, whose values may be generalised (``130**``, ``[20-30]``, ``*``)."""
    rows, people = columns_of(released), columns_of(known)
    held: dict[Key, list[str]] = defaultdict(list)
    for key, (secret,) in zip(pick(rows, on, what="on"), pick(rows, [sensitive], what="sensitive"), strict=True):
        held[key].append(str(secret))
    regions = {key: tuple(region(one) for one in key) for key in held}
    plain = {key for key, parts in regions.items() if all(part.values and len(part.values) == 1 for part in parts)}
    wide = [key for key in held if key not in plain]
    exact: dict[Key, list[Key]] = defaultdict(list)
    for key in plain:
        exact[tuple(next(iter(part.values or ())) for part in regions[key])].append(key)
    keys = pick(people, on, what="on")
    matches: dict[Key, tuple[Key, ...]] = {}
    for key in set(keys):
        parts = [region(one) for one in key]
        spelt = [part.values and next(iter(part.values)) for part in parts]
        among = list(held) if None in spelt else [*exact[tuple(spelt)], *wide]
        matches[key] = tuple(one for one in among if all(a.meets(b) for a, b in zip(regions[one], parts, strict=True)))
    sharing = Counter(matches[key] for key in keys)
    names = pick(people, [name], what="name")
    return [
        Linked(
            name=str(who),
            rows=sum(len(held[one]) for one in matches[key]),
            secrets=tuple(sorted({secret for one in matches[key] for secret in held[one]})),
            shared_by=sharing[matches[key]],
        )
        for key, (who,) in zip(keys, names, strict=True)
    ]


def linkage(
    released: Any, known: Any, *, on: Sequence[str], name: str, sensitive: str, show: int = 20
) -> AttackFinding:  # fmt: skip
    """Link a release with a list of names, and report the people found and the secrets revealed."""
    found = link(released, known, on=on, name=name, sensitive=sensitive)
    exactly = [one for one in found if one.is_found]
    told = [one for one in found if one.is_revealed]
    order = sorted(found, key=lambda one: (not one.is_found, not one.is_revealed, one.rows))
    secrets = Counter(columns_of(released)[sensitive])
    commonest = max(secrets.values(), default=0) / max(1, secrets.total())
    return AttackFinding(
        title=f"Names put back by {', '.join(on)}",
        verdict=f"{len(exactly):,} of {len(found):,} people are linked to one row, "
        f"and {len(told):,} have their {sensitive} told.",
        works=bool(told),
        notes=(
            "Told: all the rows that may be somebody's say the same, be it one row or many.",
            "Taken as given: whoever is looked up is in the release. What is told is then certain, and no guess; "
            f"always naming the commonest {sensitive} is right for {commonest:.1%} of the rows.",
        ),
        columns=(name, "rows that fit", sensitive, "found out"),
        rows=tuple(
            (one.name, str(one.rows), ", ".join(one.secrets) or "–", "row" if one.is_found else "←" * one.is_revealed)
            for one in order[:show]
        ),
        numbers={"people": len(found), "linked": len(exactly), "told": len(told)},
        draw=partial(_draw_sizes, Counter(min(one.rows, 10) for one in found)),
    )


def _draw(shown: list[tuple[str, float, float]], axes: Any) -> None:
    names = [name for name, _, _ in shown]
    alone = [share for _, share, _ in shown]
    axes.barh(names, alone, color="crimson", label="alone")
    axes.barh(names, [few for *_, few in shown], left=alone, color="orange", label=f"in groups of 2–{SMALL}")
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of people")
    axes.legend(loc="lower right")


def _draw_sizes(sizes: Counter[int], axes: Any) -> None:
    places = range(11)
    axes.bar(places, [sizes[size] for size in places], color=["grey", "crimson", *["steelblue"] * 9])
    axes.set_xticks(places, [*map(str, range(10)), "10+"])
    axes.set_xlabel("rows of the release that may be somebody's")
    axes.set_ylabel("people")
