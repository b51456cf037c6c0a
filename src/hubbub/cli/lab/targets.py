"""Hubbub as a target of the lab: made-up people behind the real gate, with a budget. The attacks do not know it."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.attack.gateway.averaging import Ask
from hubbub.attack.gateway.exclusion import Count
from hubbub.attack.marginals import Domain, Margin, Record
from hubbub.attack.reconstruction import Answers

if TYPE_CHECKING:
    from hubbub.session.database import Database


@contextmanager
def gate(
    name: str,
    columns: Mapping[str, Sequence[Any]],
    *,
    epsilon: Fraction,
    tables: Mapping[str, str] | None = None,
    **declared: Any,
) -> Iterator["Database"]:
    """Open made-up rows behind a gate of their own, gone afterwards; of each unit one row counts, unless ``limits`` say
    otherwise. ``tables`` are public: names, and what makes them.
    """
    import duckdb

    from hubbub.ledger import Marks
    from hubbub.policy.tables import Limits
    from hubbub.privacy.budget import Budget
    from hubbub.session.opening import open as opened

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with duckdb.connect() as engine:
            listed = ", ".join(f'unnest(?) AS "{column}"' for column in columns)
            engine.execute(f'CREATE TABLE "{name}" AS SELECT {listed}', [list(held) for held in columns.values()])
            engine.execute(f"COPY \"{name}\" TO '{place / name}.parquet'")
            for other, select in (tables or {}).items():
                engine.execute(f"COPY ({select}) TO '{place / other}.parquet'")
        with opened(
            place / f"{name}.parquet",
            unit="id",
            budget=Budget(epsilon=epsilon),
            tables={other: place / f"{other}.parquet" for other in tables or {}},
            ledger=place / "ledger.db",
            marks=Marks(place / "state"),
            **{"limits": Limits(max_groups=1, max_rows=1)} | declared,
        ) as db:
            yield db


def subsets(secret: Any, *, epsilon: Fraction) -> Answers:
    """All subsets as one question: a public table says who is in which, and so in how many anybody can be."""
    import numpy as np

    from hubbub.policy.tables import Limits

    def answer(asked: Any) -> Any:
        many, people = asked.shape
        marks = ", ".join("'" + "".join(map(str, column)) + "'" for column in asked.T.tolist())
        lines = f"(SELECT unnest([{marks}]) AS marks, unnest(range({people})) AS id)"
        public = f"SELECT id, question FROM {lines}, range({many}) AS t(question) WHERE marks[question + 1] = '1'"
        limits = Limits(max_groups=max(1, int(asked.sum(axis=0).max())), max_rows=1, max_fanout=many)
        columns = {"id": range(people), "secret": [int(bit) for bit in secret]}
        with gate(
            "people", columns, epsilon=epsilon, tables={"asked": public}, limits=limits, bounds={"secret": (0, 1)}
        ) as db:
            answer = db.sql(
                "SELECT question, count(*) AS n FROM people JOIN asked USING (id) WHERE secret = 1 GROUP BY question",
                epsilon=epsilon,
            )
        numbers = np.zeros(many)
        for question, count in answer.rows:
            numbers[int(question)] = float(count)
        return numbers

    return answer


@contextmanager
def pupils(table: Sequence[Mapping[str, Any]], *, epsilon: Fraction, questions: int) -> Iterator[Count]:
    """Counts of made-up pupils, so many at an equal price."""
    columns = {name: [row[name] for row in table] for name in table[0]}
    with gate("pupils", columns, epsilon=epsilon) as db:
        yield lambda text: float(
            db.sql(f"SELECT count(*) AS n FROM pupils WHERE {text}", epsilon=epsilon / questions).rows[0][0]
        )


@contextmanager
def ask_repeatedly(people: int, *, epsilon: Fraction, each: Fraction, reworded: bool) -> Iterator[Ask]:
    """One count, asked again; or in other words each time, so that no stored answer can be found."""
    with gate("people", {"id": range(people)}, epsilon=epsilon) as db:

        def ask(attempt: int) -> float:
            words = f"id > {-1 - attempt}" if reworded else "id > -1"
            return float(db.sql(f"SELECT count(*) AS n FROM people WHERE {words}", epsilon=each).rows[0][0])

        yield ask


def publish_tables(
    records: Sequence[Record], *, domain: Domain, ways: Sequence[Margin], epsilon: Fraction
) -> list[Margin]:
    """The same tables as ``ways``, through the gate, each at an equal part of ε."""
    columns = dict(zip(domain, map(list, zip(*records, strict=True)), strict=True)) | {"id": list(range(len(records)))}
    keys = {name: list(values) for name, values in domain.items()}
    found = []
    with gate("block", columns, epsilon=epsilon, keys=keys) as db:
        for table in ways:
            named = ", ".join(table.of)
            answer = db.sql(f"SELECT {named}, count(*) AS n FROM block GROUP BY {named}", epsilon=epsilon / len(ways))
            counts = {tuple(str(one) for one in row[:-1]): float(row[-1]) for row in answer.rows}
            found.append(Margin(of=table.of, counts={key: counts.get(key, 0.0) for key in table.counts}))
    return found
