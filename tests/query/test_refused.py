"""What is refused, and how: every line of refused.sql gives its code, and nothing that anybody writes crashes."""

import re
from pathlib import Path

import pytest

from hubbub import errors
from hubbub.errors import NotSql, QueryError, TooHeavy
from hubbub.query.functions import FUNCTIONS
from hubbub.query.plan.plan import plan
from hubbub.query.read.text.sql_text import MOST_CHARACTERS, MOST_DEPTH
from tests.query.asking import POLICY, read

LINES = [
    tuple(line.split(maxsplit=1))
    for line in (Path(__file__).parents[1] / "fixtures" / "plans" / "refused.sql").read_text().splitlines()
    if line and not line.startswith("-- ")
]
WHERE = "select count(*) from stays where "


def refusal(text: object) -> QueryError:
    with pytest.raises(QueryError) as caught:
        plan(read(text), POLICY, epsilon=1)  # type: ignore[arg-type]
    return caught.value


def test_there_are_enough_and_none_twice() -> None:
    assert len(LINES) >= 650
    assert len({text for _, text in LINES}) == len(LINES)
    codes = {one.code for one in vars(errors).values() if isinstance(one, type) and issubclass(one, QueryError)}
    assert {code for code, _ in LINES} == codes - {"query"}


@pytest.mark.parametrize(("code", "text"), LINES)
def test_refused_with_its_code(code: str, text: str) -> None:
    found = refusal(text)
    assert found.code == code
    sentence, *drawing = found.message.split("\n    ")
    assert sentence.endswith(".")
    assert (
        sentence[0].isupper() or sentence[0].isdigit() or sentence[0] in "'\"_" or sentence.split()[0] in FUNCTION_WORDS
    )
    if drawing:
        line, carets = drawing
        assert re.fullmatch(r" *\^+", carets)
        assert len(carets) <= len(line) + 1
        assert line.strip("…") in text


FUNCTION_WORDS = FUNCTIONS.keys() | {"cost", "ward"}
"""A sentence may begin with the name of a function or a column."""


@pytest.mark.parametrize(("code", "text"), LINES[::5])
def test_whitespace_case_and_comments_change_nothing(code: str, text: str) -> None:
    if "--" in text or "'" in text or '"' in text or text == ";":
        return
    spaced = "/* so */ " + text.replace(" ", "\n   ") + " -- and so on"
    assert refusal(spaced.upper() if "$" not in text else spaced).code == code


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("select " + "(" * 100_000 + "1" + ")" * 100_000 + " from stays", TooHeavy),
        (WHERE + "(" * 20_000 + "true" + ")" * 20_000, TooHeavy),
        (WHERE + "(" * (MOST_DEPTH + 1) + "true" + ")" * (MOST_DEPTH + 1), TooHeavy),
        (WHERE + "$$ ' $$ = ward and " + "(" * 8000 + "true" + ")" * 8000, TooHeavy),
        (WHERE + "/* /* */ ' */ true and " + "(" * 8000 + "true" + ")" * 8000, TooHeavy),
        ("select " + "{'a':" * 6000 + "1" + "}" * 6000 + " from stays", TooHeavy),
        ("select " + "- " * 20_000 + "1 from stays", TooHeavy),
        (WHERE + "not " * 12_000 + "true", TooHeavy),
        (WHERE + "not " * 300 + "true", TooHeavy),
        (WHERE + "case when " * 1500 + "true" + " then true end" * 1500, TooHeavy),
        (WHERE + " and ".join(["age > 1"] * 2000), TooHeavy),
        (WHERE + "cast(age as " + "struct<a " * 3000 + "int" + ">" * 3000 + ") = 1", TooHeavy),
        (WHERE + "ward = '" + "a" * 10_000_000 + "'", TooHeavy),
        ("select count(*)" + "+1" * 20_000 + " from stays", TooHeavy),
        ("select " * 8000, TooHeavy),
        (" " * (MOST_CHARACTERS + 1), TooHeavy),
        (
            "select count(*) from stays " + " ".join(f"join wards w{n} on stays.ward = w{n}.id" for n in range(21)),
            TooHeavy,
        ),
        (WHERE + "ward like '" + "%a" * 501 + "'", errors.TypeMisfit),
        (WHERE + "age = " + "9" * 5000, errors.TypeMisfit),
        (WHERE + "cost = 1." + "9" * 5000 + "e9999", errors.TypeMisfit),
        ("select count(*) from stays\x00", NotSql),
        ("select count(*) from stays where ward = '\x00'", NotSql),
        ("select count(*) from stays where ward = '\ud800'", NotSql),
        ("select count(*) from stays where ward = '\x1b[2J'", NotSql),
        ("select count(*) from stays\uffff", NotSql),
        (b"select count(*) from stays".decode("utf-16-le", "replace"), QueryError),
        (b"select count(*) from stays where ward = '\xff'".decode(errors="surrogateescape"), NotSql),
        (b"select count(*) from stays", NotSql),
        (None, NotSql),
        (1, NotSql),
        ("", NotSql),
        (" \n\t", NotSql),
        ("-- nothing", NotSql),
        ("/* nothing */", NotSql),
        (";" * 1000, NotSql),
        ("'" * 20_001, NotSql),
        ("select count(*) from " + "a" * 40_000, errors.UnknownName),
    ],
    ids=range(37),
)
def test_heavy_and_broken_text(text: object, error: type[QueryError]) -> None:
    assert isinstance(refusal(text), error)


@pytest.mark.parametrize(
    "text",
    [
        WHERE + "case " * 25 + "age" + " when 1 then 2 when 3 then 4 end" * 25 + " = 2",
        WHERE + "urgent" + " between false and true" * 30,
        WHERE + "(" * 25 + "urgent" + "::int = 1)" * 25,
        "select count(*) as a0, " + ", ".join(f"a{n} + a{n} as a{n + 1}" for n in range(60)) + " from stays",
        "select count(*) as a0, "
        + ", ".join(f"a{n} between 1 and 2 as a{n + 1}" for n in range(1))
        + ", "
        + ", ".join(f"a{n} between false and true as a{n + 1}" for n in range(1, 60))
        + " from stays",
    ],
    ids=["case of case", "between of between", "cast of cast", "alias of alias", "alias of between"],
)
def test_what_doubles_at_every_level_is_refused(text: str) -> None:
    assert isinstance(refusal(text), TooHeavy)


@pytest.mark.parametrize("text", ["select count(*) + n as n from stays", "select count(*) + b as a, a as b from stays"])
def test_an_alias_of_itself_is_refused(text: str) -> None:
    assert "stands for itself" in str(refusal(text))


@pytest.mark.parametrize(
    "text",
    [
        WHERE + "(" * (MOST_DEPTH - 1) + "age > 1" + ")" * (MOST_DEPTH - 1),
        WHERE + " and ".join(["age > 1"] * 60),
        WHERE + "ward = '" + "(" * 1000 + "'",
        WHERE + "ward = 'a' -- " + "(" * 1000,
        WHERE + "age in (" + ", ".join(map(str, range(2000))) + ")",
        "select count(*) from stays;",
        "select count(*)\r\n\tfrom stays -- done",
    ],
    ids=range(7),
)
def test_what_is_not_too_heavy_is_read(text: str) -> None:
    assert read(text).asked


def test_nothing_of_the_question_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    refusal("explain analyze select secret_word from stays")
    assert not caplog.records
