"""The page of an audit: everything is on it, nothing on it runs, and the bars are as long as what was proven."""

import re
from datetime import UTC, datetime
from typing import Any

from hubbub.report.audits import page_of

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def finding(**changed: Any) -> dict[str, Any]:
    return {
        "bounds": "epsilon",
        "epsilon": 0.8,
        "delta": 0.0,
        "event": "output ≥ 2",
        "likelier": "x",
        "hits": [70, 100],
        "other_hits": [30, 100],
        "confidence": 0.999999,
    } | changed


def report(**changed: Any) -> dict[str, Any]:
    return {
        "subject": "geometric",
        "claim": {"words": "ε = 1", "points": [[1.0, 0.0]]},
        "accused": False,
        "counterexample": None,
        "findings": [finding()],
        "sight": 1.07,
        "pairs": 24,
        "draws": 104_000,
        "confidence": 0.999999,
        "seed": 5,
        "seconds": 1.25,
    } | changed


REFUTED = report(
    subject="<script>alert(1)</script>",
    accused=True,
    counterexample={
        "about": "one <b>row</b>",
        "inputs": "x = '<img src=x>'",
        "sentences": ["moved & moved"],
        "finding": None,
    },
    findings=[finding(epsilon=2.0)],
)


def test_what_was_claimed_tried_and_found_is_there() -> None:
    page = page_of([report()], title="June", made=MADE)
    for words in ("June: no counterexample", "geometric", "ε = 1", "104,000", "2026-01-02 03:04", "Seed 5", "1.07"):
        assert words in page
    assert "ε ≥ 0.8000 at δ = 0: output ≥ 2, in 70 of 100 draws on x and in 30 of 100 on y." in page
    assert 'aria-label="80% of the claim"' in page


def test_a_counterexample_is_told_first_and_counted() -> None:
    page = page_of([report(), REFUTED], made=MADE)
    assert "1 of 2 refuted" in page
    assert 'aria-label="200% of the claim"' in page
    assert "moved &amp; moved" in page


def test_nothing_on_it_is_read_as_html() -> None:
    page = page_of([REFUTED], made=MADE)
    for tag in ("<script", "<img", "<b>"):
        assert tag not in page
    assert not re.search(r"(src|href)=\"?(https?:|//)", page)


def test_bounds_on_delta_are_held_against_their_own_point() -> None:
    claim = {"words": "ρ", "points": [[0.5, 0.1], [1.0, 0.04]]}
    page = page_of([report(claim=claim, findings=[finding(bounds="delta", epsilon=1.0, delta=0.03)])], made=MADE)
    assert 'aria-label="75% of the claim"' in page
    assert "δ ≥ 0.0300 at ε = 1" in page


def test_without_counts_there_is_no_bar() -> None:
    assert "<svg" not in page_of([report(findings=[], sight=None)], made=MADE)
