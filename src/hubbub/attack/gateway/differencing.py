"""Questions whose answers, taken from each other, are about few people: everybody, and everybody not named Frank.

A question is the set of people whom it counts. A combination with coefficients ±1 has the squared length cᵀGc, where G
holds the sizes of the intersections; a short vector of whole numbers is a statement about few people. And whatever some
combination of all answers says about one person alone, it says because that person's unit vector lies in their span.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.gateway.predicates import condition
from hubbub.attack.made_up import Array
from hubbub.errors import HubbubError, ParameterError

FEW = 3
_MOST_TERMS = 3
_MOST_QUESTIONS = 400
_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """A short combination of answers, and the people whom it is about."""

    terms: tuple[tuple[int, str], ...]
    """Signs and questions."""
    people: tuple[int, ...]

    def __str__(self) -> str:
        first, *rest = self.terms
        return f"{'−' * (first[0] < 0)}[{first[1]}]" + "".join(f" {'+' if s > 0 else '−'} [{t}]" for s, t in rest)


def isolations(
    questions: Mapping[str, Iterable[int]], *, few: int = FEW, terms: int = 2
) -> list[Isolation]:  # fmt: skip
    """Combinations of up to ``terms`` questions that are about at most ``few`` people, the fewest first."""
    if not 1 <= terms <= _MOST_TERMS:
        raise ParameterError("terms", f"from 1 to {_MOST_TERMS}", terms)
    if few < 1:
        raise ParameterError("few", "at least 1", few)
    if len(questions) > _MOST_QUESTIONS and terms == _MOST_TERMS:
        raise ParameterError("terms", f"2 for more than {_MOST_QUESTIONS} questions", terms)
    names, matrix, people = _matrix(questions)
    gram = (matrix @ matrix.T).astype(np.int64)
    found: dict[tuple[tuple[int, int], ...], tuple[int, ...]] = {}
    said: set[tuple[int, ...]] = set()
    for count in range(1, terms + 1):
        fresh: set[tuple[int, ...]] = set()
        for signed in _short(gram, few=few, count=count):
            vector = sum(sign * matrix[place] for place, sign in signed)
            about = tuple(people[one] for one in np.flatnonzero(vector))
            if about and about not in said:  # what fewer questions say already is not said again
                found[signed] = about
                fresh.add(about)
        said |= fresh
    shortest = sorted(found.items(), key=lambda one: (len(one[1]), len(one[0])))
    return [
        Isolation(terms=tuple((sign, names[place]) for place, sign in signed), people=about)
        for signed, about in shortest
    ]


def _matrix(questions: Mapping[str, Iterable[int]]) -> tuple[list[str], Array, list[int]]:
    sets = {name: frozenset(rows) for name, rows in questions.items()}
    people = sorted(frozenset().union(*sets.values()))
    at = {one: place for place, one in enumerate(people)}
    matrix = np.zeros((len(sets), len(people)))
    for line, rows in enumerate(sets.values()):
        matrix[line, [at[one] for one in rows]] = 1
    return list(sets), matrix, people


def _short(gram: Array, *, few: int, count: int) -> Iterable[tuple[tuple[int, int], ...]]:
    """Combinations whose squared length is between 1 and ``few``, each in one of its two signs."""
    many = len(gram)
    own = np.diag(gram)
    if count == 1:
        yield from (((int(one), 1),) for one in np.flatnonzero((own > 0) & (own <= few)))
    elif count == 2:
        length = own[:, None] + own[None, :] - 2 * gram
        for i, j in zip(*np.nonzero(np.triu((length > 0) & (length <= few), 1)), strict=True):
            larger, smaller = (i, j) if own[i] >= own[j] else (j, i)
            yield (int(larger), 1), (int(smaller), -1)
    else:
        for i, (b, c) in product(range(many), ((1, -1), (-1, 1), (-1, -1))):
            length = own[i] + own[:, None] + own[None, :] + 2 * (b * gram[i][:, None] + c * gram[i] + b * c * gram)
            for j, k in zip(*np.nonzero(np.triu((length > 0) & (length <= few), 1)), strict=True):
                if j > i:
                    yield (i, 1), (int(j), b), (int(k), c)


def find_determined(questions: Mapping[str, Iterable[int]], *, few: int = 1) -> list[tuple[int, ...]]:
    """Groups of at most ``few`` people of whom some combination of all the answers tells the total."""
    _, matrix, people = _matrix(questions)
    if not people or not len(matrix):
        return []
    kinds, inverse, sizes = np.unique(matrix, axis=1, return_inverse=True, return_counts=True)
    _, singular, right = np.linalg.svd(kinds, full_matrices=False)
    basis = right[singular > _TOLERANCE * singular[0]]
    inside = np.square(basis).sum(axis=0)  # the squared length of a unit vector's projection on the span
    return [
        tuple(people[one] for one in np.flatnonzero(inverse.ravel() == kind))
        for kind in range(kinds.shape[1])
        if inside[kind] > 1 - _TOLERANCE and sizes[kind] <= few
    ]


def differencing(
    questions: Mapping[str, Iterable[int]], *, few: int = FEW, terms: int = 2, show: int = 30
) -> AttackFinding:
    """Look through sets of people that were asked about, and say whom the answers isolate."""
    held = {name: frozenset(rows) for name, rows in questions.items()}
    found = isolations(held, few=few, terms=terms)
    fixed = find_determined(held, few=few)
    alone = {one for group in fixed for one in group}
    everybody = frozenset().union(*held.values()) if held else frozenset()
    return AttackFinding(
        title=f"Differences between {len(held)} questions",
        verdict=f"{len(found)} short combinations are about at most {few} people; all the answers together isolate "
        f"{len(alone)} of {len(everybody)} people."
        if found or fixed
        else f"No combination of up to {terms} answers, nor of all of them, is about at most {few} people.",
        works=bool(found or fixed),
        notes=("With exact answers, each line below is a number about these people alone.",) if found else (),
        columns=("combination", "people", "who (row numbers)"),
        rows=tuple((str(one), str(len(one.people)), ", ".join(map(str, one.people))) for one in found[:show]),
        numbers={"questions": len(held), "combinations": len(found), "isolated": len(alone), "people": len(everybody)},
        draw=partial(_draw, [len(rows) for rows in held.values()], [len(one.people) for one in found]),
    )


def _draw(sizes: list[int], isolated: list[int], axes: Any) -> None:
    axes.hist([np.log10(np.maximum(sizes, 1)), np.log10(np.maximum(isolated, 1))], bins=12,
              color=["steelblue", "crimson"], label=["questions", "their differences"])  # fmt: skip
    axes.set_xlabel("people that a number is about (powers of ten)")
    axes.set_ylabel("numbers")
    axes.legend()


def plan(log: Sequence[str], table: Any) -> tuple[dict[str, frozenset[int]], list[str]]:
    """From a log of questions to sets of rows of a table, and the lines that could not be read."""
    sets, unread = {}, []
    for line in log:
        try:
            sets[line.strip().rstrip(";")] = condition(line).rows(table)
        except HubbubError as problem:
            unread.append(problem.message)
    return sets, unread
