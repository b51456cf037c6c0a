"""Groups by keys that nobody listed, asked in SQL from end to end: authors and their 2-grams, ε = 3, δ = e^-10."""

import csv
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

import hubbub as hb
from bench.data import reddit
from bench.record import Bench, Row
from hubbub.ledger import Ledger, Marks
from hubbub.query.answer.answer import Answer

EPSILON = Fraction(3)
DELTA = Fraction(math.exp(-10))
TRIALS = 10
TARGET = 100
QUESTIONS: tuple[tuple[str, int], ...] = (
    ("SELECT ngram FROM posts GROUP BY ngram", 100),
    ("SELECT ngram FROM posts GROUP BY ngram", 30),
    ("SELECT ngram, count(DISTINCT author) AS n FROM posts GROUP BY ngram", 30),
    ("SELECT ngram, count(DISTINCT author) AS n FROM posts GROUP BY ngram", 1),
)


def asked(path: Path, ledger: Ledger, text: str, cap: int) -> Answer:
    """One question, with a ledger that has not seen it."""
    with hb.open(
        path,
        name="posts",
        unit="author",
        columns={"author": "text", "ngram": "text"},
        limits=hb.Limits(max_groups=cap, max_rows=1),
        budget=hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 2)),
        ledger=ledger,
    ) as db:
        return db.sql(text, epsilon=EPSILON, delta=DELTA)


def run() -> Iterator[Row]:
    """Each question a few times; how far counts are off is measured against the whole data, cut included."""
    units = reddit()
    truth = Counter(key for held in units.values() for key in held)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posts.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [("author", "ngram"), *((who, one) for who, held in units.items() for one in held)]
            )
        for number, (text, cap) in enumerate(QUESTIONS):
            answers = []
            for trial in range(TRIALS):
                at = Path(folder) / f"{number}-{trial}"
                at.mkdir()
                answers.append(asked(path, Ledger(at / "ledger", marks=Marks(at / "marks")), text, cap))
            many = [len(answer) for answer in answers]
            mean, error = float(np.mean(many)), float(np.std(many, ddof=1) / math.sqrt(TRIALS))
            figures = {"keys shown": mean, "s.e.": error}
            if "count" in text:
                off = [abs(row[1] - truth[row[0]]) / truth[row[0]] for answer in answers for row in answer.rows]
                figures["median error of counts"] = float(np.median(off))
            held_to = number == 0
            yield Row(
                what=f"{text}, at most {cap} groups a unit",
                figures=figures,
                target=f"≥ {TARGET}" if held_to else "",
                holds=mean >= TARGET if held_to else None,
            )


BENCH = Bench(
    name="unknown",
    about="keys that nobody listed, of the reddit sample, 3,486 authors, asked in SQL at ε = 3, δ = e^-10",
    run=run,
    steps=len(QUESTIONS),
    notes=(
        "Without counts all of the budget goes to the keys (weighted Gaussian selection); with them the count that is "
        "shown is the draw that has passed. Errors of counts are relative, and include the groups that were cut.",
    ),
)
