"""Hidden counts against every table that fits, and the published table of the first lecture."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hubbub.attack.suppression import PublishedTable, exact_ranges, hcup, one_line_at_a_time, suppression
from hubbub.errors import HubbubError, ParameterError


def by_name(
    table: PublishedTable, found: dict[tuple[int, int], tuple[int, int]]
) -> dict[tuple[str, str], tuple[int, int]]:
    return {(table.rows[i], table.columns[j]): one for (i, j), one in found.items()}


class TestOvarianCancer:
    def test_what_is_found_out(self) -> None:
        found = by_name(hcup(), exact_ranges(hcup()))
        pinned = {place: low for place, (low, high) in found.items() if low == high}
        assert pinned == {("1-17", "White"): 1, ("all", "Native American"): 1, ("1-17", "all"): 3}

    def test_the_slides_ranges_and_the_exact_ones(self) -> None:
        pencil = one_line_at_a_time(hcup())
        others = [place for place in hcup().hidden if place[0] == 1 and place[1] >= 2]
        assert [pencil[place] for place in others] == [(0, 2)] * 6
        exact = by_name(hcup(), exact_ranges(hcup()))
        assert exact["1-17", "Native American"] == (0, 1)
        assert exact["85+", "Black"] == (1, 3)
        assert exact["1-17", "Asian/Pacific"] == (0, 2)

    def test_that_small_counts_are_hidden_says_more(self) -> None:
        exact = by_name(hcup(), exact_ranges(replace(hcup(), most=10)))
        assert [exact["1-17", name] for name in ("Asian/Pacific", "Native American", "Other", "Missing")] == [
            (0, 1)
        ] * 4
        assert exact["1-17", "Black"] == (0, 2)
        assert exact["85+", "Black"] == (1, 3)

    def test_the_report(self) -> None:
        found = suppression(hcup())
        assert found.works
        assert found.verdict == "3 of 27 hidden counts can only be one number."
        assert "1-17 / White" in str(found)
        assert found.to_dict()["numbers"] == {"hidden": 27, "pinned": 3}


@pytest.mark.parametrize("seed", range(6))
def test_against_every_table_that_fits(seed: int) -> None:
    chance = np.random.default_rng(seed)
    inner = chance.integers(0, 3, size=(2, 3))
    whole = np.block([[inner.sum(), inner.sum(axis=0)], [inner.sum(axis=1)[:, None], inner]])
    left_out = chance.random((3, 4)) < 0.6
    kept = np.ma.masked_array(whole, left_out).tolist()
    cells = tuple(tuple(None if cell is None else int(cell) for cell in row) for row in kept)
    table = PublishedTable(rows=tuple("tab"), columns=tuple("tabc"), cells=cells, most=9 if seed % 2 else 40)
    table = replace(table, cells=((int(whole[0, 0]), *cells[0][1:]), *cells[1:]))
    body = np.array(list(itertools.product(range(5), repeat=6))).reshape(-1, 2, 3)
    tried = np.zeros((len(body), 3, 4), dtype=np.int64)
    tried[:, 1:, 1:], tried[:, 0, 1:], tried[:, 1:, 0] = body, body.sum(axis=1), body.sum(axis=2)
    tried[:, 0, 0] = body.sum(axis=(1, 2))
    fits = np.ones(len(body), dtype=bool)
    for i, row in enumerate(table.cells):
        for j, cell in enumerate(row):
            fits &= tried[:, i, j] <= (table.most or 0) if cell is None else tried[:, i, j] == cell
    seen = {(i, j): tried[fits, i, j].tolist() for i, j in table.hidden}
    exact = exact_ranges(table)
    for place, values in seen.items():
        low, high = exact[place]
        assert low <= min(values)
        assert max(values) <= high
        if high < 5:
            assert (low, high) == (min(values), max(values))


def test_reading_a_file() -> None:
    table = PublishedTable.read("age,all,a,b\nall,12,*,7\nold,5,<4,\nyoung,7,2,5\n")
    assert table.rows == ("all", "old", "young")
    assert table.columns == ("all", "a", "b")
    assert table.cells == ((12, None, 7), (5, None, None), (7, 2, 5))
    assert table.most == 3
    with pytest.raises(ParameterError, match="a count"):
        PublishedTable.read("age,all,a\nall,12,many\nold,5,2\n")


def test_numbers_that_no_table_has() -> None:
    table = PublishedTable(rows=("all", "a", "b"), columns=("all", "x"), cells=((10, 10), (4, None), (3, 3)))
    with pytest.raises(HubbubError, match="No table"):
        exact_ranges(table)


def test_nothing_hidden_and_bad_shapes() -> None:
    plain = PublishedTable(rows=("all", "a"), columns=("all", "x"), cells=((4, 4), (4, 4)))
    assert exact_ranges(plain) == {}
    assert not suppression(plain).works
    with pytest.raises(ParameterError):
        PublishedTable(rows=("all",), columns=("all", "x"), cells=((4, 4),))
    with pytest.raises(ParameterError):
        PublishedTable(rows=("all", "a"), columns=("all", "x"), cells=((4, 4), (-1, 5)))
