"""The attack log lists what was tried against the glue, and each attempt is kept as a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| `([^`|]+)` \|$", re.MULTILINE)
LEAST = 200


def rows() -> list[tuple[str, ...]]:
    return ROW.findall((ROOT / "docs" / "attack-log.md").read_text(encoding="utf-8"))


def test_at_least_two_hundred_different_attempts_are_listed() -> None:
    listed = rows()
    assert [int(number) for number, *_ in listed] == [*range(1, len(listed) + 1)]
    assert len({attempt.strip().lower() for _, attempt, _, _ in listed}) == len(listed) >= LEAST


def test_every_attempt_is_kept_as_a_test_that_exists() -> None:
    for number, _, outcome, kept in rows():
        file, _, name = kept.partition("::")
        assert outcome.strip(), number
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"^ *def {re.escape(name)}\(", text, re.MULTILINE), f"{number}: {kept}"


def test_every_row_of_a_table_is_read() -> None:
    text = (ROOT / "docs" / "attack-log.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| *\d+ *\|", text, re.MULTILINE)) == len(rows())
