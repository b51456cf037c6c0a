"""What a unit may add, where not all of it is said: never less than what is."""

from typing import Any

import pytest

from hubbub.errors import ParameterError
from hubbub.publish import Contribution, Cube, Domain, Flat, Marginals, Terms, run_cube, run_table


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({}, (1, 1, 1)),
        ({"cells": 3}, (3, 1, 3)),
        ({"each": 3}, (1, 3, 3)),
        ({"cells": 3, "each": 2}, (3, 2, 6)),
        ({"total": 5}, (5, 5, 5)),
        ({"cells": 3, "total": 5}, (3, 5, 5)),
        ({"each": 2, "total": 5}, (5, 2, 5)),
        ({"cells": 3, "each": 2, "total": 5}, (3, 2, 5)),
        ({"cells": 9, "each": 9, "total": 5}, (5, 5, 5)),
        ({"cells": 2, "each": 2, "total": 9}, (2, 2, 4)),
    ],
)
def test_what_is_left_out(said: dict[str, Any], meant: tuple[int, int, int]) -> None:
    one = Contribution(**said)
    assert (one.cells, one.each, one.total) == meant
    assert Contribution(cells=one.cells, each=one.each, total=one.total) == one


@pytest.mark.parametrize("name", ["cells", "each", "total"])
def test_what_nobody_can_add(name: str) -> None:
    wrong: dict[str, Any] = {name: -1}
    with pytest.raises(ParameterError, match=name):
        Contribution(**wrong)


def test_rows_of_a_unit_that_are_said_by_their_total_are_paid_for() -> None:
    """Noise for m rows a unit, and not for one."""
    domain, rows = Domain.without_names((3, 4)), [[0, 0], [2, 3]]
    pairs: list[tuple[Any, Any]] = [(run_table, Marginals(ways=1)), (run_cube, Cube(ways=1))]
    for run, strategy in pairs:
        one, five = (
            run(rows, domain, strategy, epsilon=1, contribution=said).prepared.measurements[0].mechanism.needs
            for said in (Contribution(), Contribution(total=5))
        )
        assert five.sensitivity == 5 * one.sensitivity
    (law,) = Flat().prepare((8,), Terms.at(1, contribution=Contribution(total=5))).measurements
    assert law.mechanism.needs.sensitivity == 5
