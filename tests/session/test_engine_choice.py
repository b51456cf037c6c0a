"""Where questions run follows from what is declared of the tables."""

from typing import Any

import pytest

from hubbub.errors import PolicyError
from hubbub.policy.tables import TableSource
from hubbub.session.engines import choose_engine


def server(place: str = "postgresql://h:5432/d", dsn: str = "postgresql://u@h/d", **said: Any) -> TableSource:
    return TableSource(format="postgres", paths=(place,), schema="s", table="t", dsn=dsn, **said)


FILE = TableSource(format="parquet", paths=("/t.parquet",))


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ([server(), server(copy=True)], "copy = true"),
        ([server(), FILE], "other tables are files"),
        ([server(), server("postgresql://h:5432/other")], "several databases"),
        ([server(), server(dsn="postgresql://v@h/d")], "several roles"),
        ([server(), server(view=True)], "is a view"),
    ],
)
def test_a_copy_is_made_for_a_reason(sources: list[TableSource], why: str) -> None:
    choice = choose_engine(sources)
    assert not choice.is_pushed
    assert choice.sentence is not None
    assert why in choice.sentence
    with pytest.raises(PolicyError, match="copy = false"):
        choose_engine([*sources, server(copy=False)])


def test_questions_run_on_the_server_where_nothing_speaks_against_it() -> None:
    assert choose_engine([server(), server(copy=False)]).is_pushed
    unfit = choose_engine([server()], unfit="the server is too old")
    assert not unfit.is_pushed
    assert "the server is too old" in str(unfit.sentence)


def test_nothing_is_said_of_files() -> None:
    assert choose_engine([FILE]).sentence is None
    assert not choose_engine([FILE]).is_pushed
