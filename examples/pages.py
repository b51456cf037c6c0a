"""One HTML page with tables and pictures, complete in itself."""

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.pictures import BLUE, ORANGE, blank, close
from hubbub.errors import MissingExtra
from hubbub.ledger import Statement
from hubbub.query.answer.answer import Answer

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}code{background:#f4f4f4;padding:.6rem;display:block;white-space:pre-wrap}
img{max-width:100%}small{color:#666}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question with its answer."""

    title: str
    question: str
    answer: Answer
    truth: list[dict[str, Any]]
    keys: list[str]


def page(path: Path, sections: Sequence[Section], statement: Statement) -> Path:
    """Writes the report."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Hubbub: a generated hospital</title>",
        f"<style>{_STYLE}</style><h1>A hospital that does not exist</h1>",
        "<p>Every number is noisy; the bar around it holds the bounded exact value with 95% confidence. The diamonds "
        "are the truth, shown because the patients are generated.</p>",
        f"<p>Spent: {html.escape(str(statement.odometer))} of {html.escape(str(statement.budget.filter.budget))} in "
        f"{statement.spent.charges} charges.</p>",
    ]
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2><code>{html.escape(section.question)}</code>")
        parts.append(section.answer._repr_html_())
        picture = _picture(section)
        if picture:
            parts.append(f"<img alt='{html.escape(section.title)}' src='data:image/png;base64,{picture}'>")
    path.write_text("\n".join(parts) + "</html>\n", encoding="utf-8")
    return path


def _picture(section: Section) -> str | None:
    """Bars with intervals and the truth; nothing where there is one row only, or no matplotlib."""
    name = next((name for name in section.answer.columns if name not in section.keys), None)
    rows = section.answer.to_dicts()
    if name is None or len(rows) < 2:
        return None
    try:
        figure = blank(8.0, 3.6)
    except MissingExtra:
        return None
    axes = figure.subplots()
    labels = [" ".join(str(row[key]) for key in section.keys) for row in rows]
    known = {tuple(row[key] for key in section.keys): row[name] for row in section.truth}
    real = [known.get(tuple(row[key] for key in section.keys), 0) for row in rows]
    values = [row[name] or 0 for row in rows]
    reach = [
        [max(0, value - row[f"{name}_low"]) for value, row in zip(values, rows, strict=True)],
        [max(0, row[f"{name}_high"] - value) for value, row in zip(values, rows, strict=True)],
    ]
    places = range(len(rows))
    axes.bar(places, values, color=BLUE, alpha=0.55)
    axes.errorbar(places, values, yerr=reach, fmt="none", ecolor="black", capsize=4)
    axes.plot(places, real, "D", color=ORANGE, markeredgecolor="white")
    axes.set_xticks(list(places), labels, rotation=20)
    axes.set_title(name)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    close(figure)
    return base64.b64encode(out.getvalue()).decode()
