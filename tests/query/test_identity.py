"""Two different questions never have one identity in the ledger: a stored answer is served for its own question alone.

The text of a question reads as that very question. So the question is a function of its text, and what two questions
mean is the same wherever their texts are.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings

from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.paths import qualify
from hubbub.policy.tables import Limits, Policy, TableColumn
from hubbub.privacy.filter import Budget
from hubbub.query.missing.bought import apply_facts
from hubbub.query.missing.lacking import lacking
from hubbub.query.ops import Relation, ScanColumn
from hubbub.query.question import Question
from tests.query import inside, test_relations_sql
from tests.query.asking import Catalogue, read
from tests.query.expressions import TIMES, seeds
from tests.query.hostile import Questions, Scene, scene

BUDGET = Budget(epsilon=Fraction(4), delta=Fraction(1, 10**6))


def catalogue_of(made: Scene, *, bounded: bool = True) -> Catalogue:
    """What is public of a scene, which needs no engine; without bounds, what questions lack is bought."""
    units = dict.fromkeys(made.names[:2], made.unit)
    columns = made.columns if bounded else {
        called: tuple(replace(column, bounds=None) for column in listed) for called, listed in made.columns.items()
    }  # fmt: skip
    tables = {called: inside._table(called, listed, units.get(called)) for called, listed in columns.items()}
    limits = Limits(max_groups=9, max_rows=9) if bounded else Limits()
    return Catalogue(Policy(account="people", budget=BUDGET, tables=tables, limits=limits))


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_the_text_of_a_question_reads_as_that_question(rng: Random) -> None:
    made = scene(rng)
    catalogue, texts = catalogue_of(made), Questions(rng, made).all()
    known: dict[str, Question] = {}
    for question in (read(text, catalogue) for text in texts):
        assert read(question.text, catalogue) == question
        assert known.setdefault(question.identity, question) == question


@pytest.mark.parametrize("text", test_relations_sql.QUESTIONS)
def test_the_text_of_an_ordinary_question_reads_as_that_question(text: str) -> None:
    catalogue = Catalogue(
        Policy(account="people", budget=BUDGET, tables=test_relations_sql.TABLES, limits=test_relations_sql.WIDE)
    )
    question = read(text, catalogue)
    assert read(question.text, catalogue) == question


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_different_facts_have_different_names(rng: Random) -> None:
    """Rows that read other columns, under any names, are other rows; and what was bought of them is not mixed up."""
    made = scene(rng)
    catalogue = catalogue_of(made, bounded=False)
    known: dict[str, Relation] = {}
    for text in Questions(rng, made).all():
        question = read(text, catalogue)
        for wanted in lacking(question, catalogue.policy):
            assert known.setdefault(wanted.name(catalogue.policy), wanted.relation) == wanted.relation


def test_names_of_all_short_pairs_differ() -> None:
    short = ["".join(letters) for length in range(4) for letters in itertools.product('ab."', repeat=length)]
    names = {qualify(source, column) for source in short for column in short}
    assert len(names) == len(short) ** 2
    assert all("." in name for name in names)


@pytest.mark.parametrize(
    ("source", "column", "name"),
    [
        ("stays", "ward", "stays.ward"),
        ("s", "Total cost, in €", "s.Total cost, in €"),
        ("a", "b.c", 'a."b.c"'),
        ("a.b", "c", '"a.b".c'),
        ('a"', "b", '"a""".b'),
        ("", "", "."),
    ],
)
def test_only_names_that_need_it_are_quoted(source: str, column: str, name: str) -> None:
    assert qualify(source, column) == name


def test_names_of_facts_in_ledgers_are_as_they_were() -> None:
    """They are made of what a relation is written as, and a scan's columns were pairs once."""
    kind = of(Type.REAL)
    assert repr(ScanColumn("s.cost", kind, "cost")) == repr(("s.cost", kind))


CLOSE = (
    'select sum(a.b) from t a',
    'select sum(a."a.b") from t a',
    'select sum("a.b") from t a',
    'select sum("a.b".b) from t "a.b"',
    'select sum("a.b"."a.b") from t "a.b"',
    'select sum(a.b) from t "a"',
    'select sum(b) from t',
    'select sum("a.b") from t',
    'select sum("b") from t',
    'select sum(b) as "a.b" from t',
    'select sum(b) as "x /* bought: [] */" from t',
    'select sum(b) as "x"" FROM ""t" from t',
    "select count(*) from t where 'a.b' = 'a.b'",
    "select count(*) from t where '\"a.b\"' = 'a.b'",
    'select sum(x.y) from (select b as y, "a.b" as "x.y" from t) x',
    'select sum(x."x.y") from (select b as y, "a.b" as "x.y" from t) x',
    'with x as (select b as y from t) select sum(y) from x',
    'with "x" as (select "b" as y from t) select sum(y) from x',
)  # fmt: skip


def test_questions_that_look_alike() -> None:
    """Each has a text of its own, and reads the column that it names."""
    columns = (
        TableColumn(name="u", kind=of(Type.INTEGER)),
        *(TableColumn(name=name, kind=integer(0, 9)) for name in ("b", "a.b")),
    )
    tables = {"t": inside._table("t", columns, "u")}
    catalogue = Catalogue(Policy(account="people", budget=BUDGET, tables=tables))
    asked = [read(text, catalogue) for text in CLOSE]
    assert len({question.text for question in asked}) == len(CLOSE)
    assert all(read(question.text, catalogue) == question for question in asked)
    bought = []
    for question in (question for question in asked if question.asked[0].argument is not None):
        facts = {wanted: wanted.anything for wanted in lacking(question, catalogue.policy)}
        bought.append(apply_facts(question, catalogue.policy, facts)[0])
    assert len({question.identity for question in bought}) == len(bought)
    assert not {question.identity for question in bought} & {question.text for question in asked}
