"""The result of an attack, for a person: a verdict, the numbers behind it, a table, and a picture if there is one.

Attacks judge outputs. They share no code with what made them, so a mistake there cannot hide itself here.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hubbub.attack.success_rate import SuccessRate

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #c6ccd6;padding:.2rem .6rem;text-align:right}"
    "th{background:#eef1f6}img{max-width:100%}.verdict{font-weight:600}"
    "@media(prefers-color-scheme:dark){body{background:#14181f;color:#e5e9f0}th{background:#232a35}"
    "td,th{border-color:#3b4452}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFinding:
    """The result of one attack."""

    title: str
    verdict: str
    """One sentence: what it gives away, or that it gives nothing away."""
    works: bool
    """Whether the attacker learned what a careful release would have kept from him."""
    rate: SuccessRate | None = None
    """For attacks that guess: how often they are right, beside chance. None where what is learned is certain."""
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    draw: Callable[[Any], None] | None = None
    """Draws on matplotlib axes."""

    @property
    def is_undecided(self) -> bool:
        """True if there are too few guesses to decide if the attack works."""
        return not self.works and self.rate is not None and not self.rate.is_decidable

    @property
    def _beside(self) -> tuple[str, ...]:
        """The lines below the verdict."""
        return self.notes if self.rate is None else (str(self.rate), *self.notes)

    def __str__(self) -> str:
        lines = [self.title, "=" * len(self.title), self.verdict, *self._beside]
        if self.rows:
            lines += ["", *_align(self.columns, self.rows)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "title": self.title,
            "verdict": self.verdict,
            "works": self.works,
            "is_undecided": self.is_undecided,
            "rate": None if self.rate is None else self.rate.to_dict(),
            "notes": list(self.notes),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "numbers": dict(self.numbers),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def plot(self, path: str | Path | None = None) -> Any:
        """The picture, written to a file if there is a path (needs ``pip install "hubbub[plot]"``)."""
        from hubbub.attack.picture import draw

        return draw(self, path)

    def to_html(self, path: str | Path) -> Path:
        """One page that needs nothing else, with the picture inside it."""
        from hubbub.attack.picture import embed

        place = Path(path)
        parts = [f"<h1>{html.escape(self.title)}</h1>", f'<p class="verdict">{html.escape(self.verdict)}</p>']
        parts += [f"<p>{html.escape(note)}</p>" for note in self._beside]
        if self.rows:
            parts.append(_table(self.columns, self.rows))
        if self.draw is not None:
            parts.append(f'<img alt="{html.escape(self.title)}" src="{embed(self)}">')
        head = f'<meta charset="utf-8"><title>{html.escape(self.title)}</title><style>{_STYLE}</style>'
        place.write_text(
            f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>', "utf-8"
        )
        return place


def _align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [columns, *rows] if columns else list(rows)
    widths = [max(len(row[place]) for row in shown) for place in range(len(shown[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]] if columns else lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(one)}</th>" for one in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
