"""Hubbub as a target of the lab: made-up people behind the real gate, with a budget."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.attack.gateway.averaging import Ask
from hubbub.attack.gateway.exclusion import Count
from hubbub.attack.marginals import Domain, Margin, Record
from hubbub.attack.reconstruction import Answers

if TYPE_CHECKING:
    from hubbub.attack.gateway.oracles import Ask as AskInSql
    from hubbub.attack.green_hair import Learner
    from hubbub.attack.membership import Loss
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
    from hubbub.privacy.filter import Budget
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


Array = Any


def means(rows: Array, *, epsilon: Fraction) -> Array:
    """Noisy means of Boolean columns, all of them for ε. How many people there are is public here."""
    from hubbub.mechanisms import Geometric

    width = rows.shape[1]
    law = Geometric(epsilon=_units(epsilon), sensitivity=width)
    sums = measure(law, rows.sum(axis=0), width=width, epsilon=epsilon)
    return sums / len(rows)


def counts(truth: int, *, epsilon: Fraction, times: int) -> list[float]:
    """One count in so many worlds, each with an account of its own: all that an attacker may see for ε."""
    from hubbub.mechanisms import Geometric

    law = Geometric(epsilon=_units(epsilon))
    return [float(measure(law, truth, width=1, epsilon=epsilon)) for _ in range(times)]


def _units(epsilon: Fraction) -> Fraction:
    """Round ε down to whole units of accounts: one third is not a whole number of them."""
    from hubbub.privacy.filter import whole_units_rounded_down

    return whole_units_rounded_down(epsilon)


def measure(law: Any, truth: Any, *, width: int, epsilon: Fraction) -> Any:
    """Through a meter whose account holds ε and no more."""
    import numpy as np

    from hubbub.gate.meter import Meter
    from hubbub.gate.secret import Facts, Secret
    from hubbub.privacy.filter import Budget
    from hubbub.privacy.sensitivity import Sensitivity

    facts = Facts(account="lab", sensitivity=Sensitivity(l0=width, linf=Fraction(1)))
    sealed = Secret(truth if isinstance(truth, int) else np.asarray(truth, dtype=np.int64), facts)
    return Meter({"lab": Budget(epsilon=epsilon)}).measure(law, sealed, label="lab").value


def private_perceptron(*, epsilon: Fraction, low: Sequence[float], high: Sequence[float]) -> "Learner":
    """The private perceptron's weights."""
    from hubbub.learn import Perceptron

    def learn(rows: Array, signs: Array) -> Array:
        model = Perceptron(epsilon=float(epsilon), bounds=(list(low), list(high)), classes=[-1, 1])
        return model.fit(rows, signs).coef_[0]

    return learn


def private_model(rows: Array, signs: Array, *, epsilon: Fraction) -> "Loss":
    """The loss of a private logistic regression of columns between −1 and 1."""
    import numpy as np

    from hubbub.learn import LogisticRegression

    width = rows.shape[1]
    model = LogisticRegression(
        epsilon=float(epsilon), bounds=([-1.0] * width, [1.0] * width), classes=[-1, 1], max_norm=float(width**0.5)
    ).fit(rows, signs)
    return lambda x, y: np.logaddexp(0, -y * model.decision_function(x))


def overfit_model(rows: Array, signs: Array) -> "Loss":
    """The squared loss of least squares with more columns than rows: it remembers each of them exactly."""
    import numpy as np

    weights = np.linalg.lstsq(rows, signs.astype(float), rcond=None)[0]
    return lambda x, y: (x @ weights - y) ** 2


@contextmanager
def clinic(bits: Sequence[int], *, epsilon: Fraction, questions: int) -> Iterator["AskInSql"]:
    """People with a code, a name and a secret bit; so many questions of any kind at an equal price."""
    people = len(bits)
    columns = {
        "id": range(people),
        "code": range(people),
        "ill": [int(bit) for bit in bits],
        "name": [f"person {place}" for place in range(people)],
    }
    bounds = {"code": (0, people - 1), "ill": (0, 1)}
    with gate("people", columns, epsilon=epsilon, bounds=bounds) as db:
        ask: Callable[[str], Any] = lambda text: db.sql(text, epsilon=epsilon / questions)  # noqa: E731
        yield ask
