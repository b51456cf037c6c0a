"""Write docs/gallery: one page for each step of ``hubbub tour``, with its text, code, output and picture, run anew.

``make docs`` runs it before the documentation is built; ``python -m tools.gallery --step suppression`` writes one page.
"""

import argparse
import inspect
import textwrap
from pathlib import Path

from hubbub.cli.lab.tours import STEPS, StepOutcome, TourStep

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "docs" / "gallery"


def code(step: TourStep) -> str:
    """What the step runs: the body of its function, without how it is shown."""
    body = textwrap.dedent(inspect.getsource(step.run).split("\n", 1)[1])
    return body.partition("\nreturn ")[0].rstrip()


def table(seen: StepOutcome) -> str:
    """As Markdown."""
    rows = [seen.columns, ("---",) * len(seen.columns), *seen.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def page(step: TourStep, folder: Path) -> Path:
    """Run one step and write its page, and its picture beside it."""
    seen = step.run()
    parts = [f"# {step.title}", step.about, f"*From lecture {step.lecture}.*", f"    hubbub tour --step {step.name}"]
    parts += [table(seen)] if seen.rows else []
    parts.append(seen.says)
    if seen.picture(folder / f"{step.name}.png"):
        parts.append(f"![{step.title}]({step.name}.png)")
    parts += ["What was run, with people who are made up:", f"```python\n{code(step)}\n```"]
    written = folder / f"{step.name}.md"
    written.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return written


def index(folder: Path) -> Path:
    """The list of all pages."""
    lines = [f"- [{step.title}]({step.name}.md) (lecture {step.lecture})" for step in STEPS.values()]
    written = folder / "index.md"
    text = (
        "# The gallery\n\nWhat the lectures behind Hubbub tell of, each as a small run. The pages are written when the "
        "documentation is built, so their numbers are of that day; `hubbub tour` shows them in a terminal.\n\n"
    )
    written.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    return written


def main(arguments: list[str] | None = None) -> None:
    """All pages, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", action="append", choices=list(STEPS), help="only this one")
    parser.add_argument("--out", type=Path, default=GALLERY)
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.step or STEPS:
        print(page(STEPS[name], chosen.out).name, flush=True)
    index(chosen.out)


if __name__ == "__main__":
    main()
