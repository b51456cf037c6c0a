"""Audits as one page that a reviewer can keep: the claim, the trials, the findings, and their meaning.

It is handed the plain form of reports, the same that is written as JSON. Every text in it is escaped: names of columns
and values of made-up tables may be anything.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; border-top: 1px solid #d5dbe1; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .3rem; vertical-align: top; }
th { border-bottom: 2px solid #9fb0c0; } tr + tr td { border-top: 1px solid #e6eaee; }
pre { background: #f4f6f8; padding: .8rem; overflow-x: auto; font-size: .85rem; }
.bad { color: #a4161a; font-weight: 600; } .good { color: #2b6a4d; } .small { color: #5b6b7a; font-size: .85rem; }
"""
_MEANING = (
    "A counterexample refutes the claim: on the two inputs that are shown, it fails, but for the false-alarm rate "
    "stated. No counterexample proves nothing: it says that these inputs, these draws and these ways of looking at "
    "answers showed no more than the bounds below. Privacy comes from the proof; an audit checks that the proof is "
    "about this program. No real data was read: all inputs were made up."
)
_WIDTH, _HEIGHT = 220, 16


def page_of(reports: Sequence[Mapping[str, Any]], *, title: str = "Audit", made: datetime | None = None) -> str:
    """The whole page, with nothing outside it."""
    made = made or datetime.now(UTC)
    accused = sum(bool(one["accused"]) for one in reports)
    verdict = "no counterexample" if not accused else f"{accused} of {len(reports)} refuted"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>',
            f"<body><h1>{escape(title)}: {verdict}</h1>",
            f"<p>{escape(_MEANING)}</p>",
            f'<p class="small">{made:%Y-%m-%d %H:%M} UTC</p>',
            "<table><tr><th>subject</th><th>claim</th><th>found</th><th>proven loss against the claim</th>"
            "<th>pairs</th><th>draws</th><th>seconds</th></tr>",
            *(_row(place, one) for place, one in enumerate(reports)),
            "</table>",
            *(_section(place, one) for place, one in enumerate(reports)),
            "</body></html>",
        ]
    )


def _row(place: int, report: Mapping[str, Any]) -> str:
    found = '<span class="bad">counterexample</span>' if report["accused"] else '<span class="good">nothing</span>'
    return (
        f'<tr><td><a href="#s{place}">{escape(report["subject"])}</a></td><td>{escape(report["claim"]["words"])}</td>'
        f"<td>{found}</td><td>{_bar(report)}</td><td>{report['pairs']:,}</td><td>{report['draws']:,}</td>"
        f"<td>{report['seconds']:.1f}</td></tr>"
    )


def _bar(report: Mapping[str, Any]) -> str:
    """The best lower bound, as a share of what is claimed; the line is the claim."""
    shares = [share for share in (_share(report, one) for one in report["findings"]) if share is not None]
    if not shares:
        return ""
    share = max(shares)
    scale = _WIDTH / max(1.6, share * 1.05)
    colour = "#a4161a" if report["accused"] else "#4a7fb5"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{share:.0%} of the claim">'
        f'<rect x="0" y="3" width="{share * scale:.1f}" height="{_HEIGHT - 6}" fill="{colour}"/>'
        f'<line x1="{scale:.1f}" x2="{scale:.1f}" y1="0" y2="{_HEIGHT}" stroke="#1c2733" stroke-width="2"/></svg>'
    )


def _share(report: Mapping[str, Any], finding: Mapping[str, Any]) -> float | None:
    claimed = {tuple(point) for point in report["claim"]["points"]}
    if finding["bounds"] == "epsilon":
        epsilons = [epsilon for epsilon, delta in claimed if delta == finding["delta"] and epsilon > 0]
        return finding["epsilon"] / epsilons[0] if epsilons else None
    deltas = [delta for epsilon, delta in claimed if epsilon == finding["epsilon"] and delta > 0]
    return finding["delta"] / deltas[0] if deltas else None


def _section(place: int, report: Mapping[str, Any]) -> str:
    found = report["counterexample"]
    lines = [
        f'<h2 id="s{place}">{escape(report["subject"])}</h2>',
        f"<p>Claims {escape(report['claim']['words'])}.</p>",
    ]
    if found is not None:
        lines.append(f'<p class="bad">Counterexample: {escape(found["about"])}</p>')
        lines += [f"<p>{escape(sentence)}</p>" for sentence in found["sentences"]]
        lines.append(f"<pre>{escape(found['inputs'])}</pre>")
    elif report["sight"] is not None:
        lines.append(f"<p>So many draws accuse randomized response from ε = {report['sight']:.4g} on.</p>")
    lines += [f"<p>{escape(_words(finding))}</p>" for finding in report["findings"]]
    lines.append(
        f'<p class="small">False alarms: at most {1 - report["confidence"]:.2g} an audit. Seed {report["seed"]}: the '
        "same seed makes the same inputs up again; noise is drawn anew.</p>"
    )
    return "\n".join(lines)


def _words(finding: Mapping[str, Any]) -> str:
    bound = (
        f"ε ≥ {finding['epsilon']:.4f} at δ = {finding['delta']:.4g}"
        if finding["bounds"] == "epsilon"
        else f"δ ≥ {finding['delta']:.4f} at ε = {finding['epsilon']:.4g}"
    )
    (hits, draws), (others, other_draws) = finding["hits"], finding["other_hits"]
    other = "y" if finding["likelier"] == "x" else "x"
    return (
        f"{bound}: {finding['event']}, in {hits:,} of {draws:,} draws on {finding['likelier']} and in {others:,} of "
        f"{other_draws:,} on {other}."
    )
