"""Output for a terminal, or for a pipe: plain text from the ledger, bars, amounts.

Names and questions in a ledger were chosen by whoever asked. They are printed as text that cannot move the cursor,
change colours, reverse the line or look like our own markup.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from hubbub.ledger.terms import Statement
from hubbub.ledger.verify.verify import Progress as Report
from hubbub.privacy.affordable import tell_room
from hubbub.privacy.filter import DELTA_UNIT, Charge, Filter, Spent, share_spent, words_of
from hubbub.privacy.loss import number
from hubbub.privacy.ways import Payer

BLOCKS = " ▏▎▍▌▋▊▉█"


def plain(text: str) -> str:
    """The text with everything that does not print written as an escape."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def cell(text: object, style: str = "") -> Text:
    """Text for a table: no markup is read in it."""
    return Text(plain(str(text)), style=style, overflow="fold")


def shorten(text: object, length: int) -> Text:
    """The beginning of a text."""
    clean = plain(str(text))
    return Text(clean if len(clean) <= length else clean[: length - 1] + "…", overflow="fold")


def console(*, stderr: bool = False) -> Console:
    """Made when needed, so that it sees the streams as they are now."""
    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def say(*lines: object) -> None:
    """Print lines that may hold names."""
    out = console()
    for line in lines:
        out.print(line if not isinstance(line, str) else Text(plain(line)), soft_wrap=isinstance(line, str))


def prose(line: str, *, indent: int = 0) -> None:
    """A sentence, wrapped to the width of the terminal."""
    console().print(Padding(Text(plain(line)), (0, 0, 0, indent), expand=False))


def complain(message: str, *, pictured: bool = False) -> None:
    """One red line to stderr; under it, where there is one, the picture of the place that it is about."""
    out = console(stderr=True)
    for line in message.split("\n") if pictured else [message]:
        out.print(Text(plain(line), style="red"), soft_wrap=True)


def note(line: str) -> None:
    """One line to stderr that is no complaint."""
    console(stderr=True).print(Text(plain(line)), soft_wrap=True)


def stack(*lines: object) -> Text:
    """A cell of several lines."""
    return Text("\n").join(line if isinstance(line, Text) else cell(line) for line in lines)


def table(title: str, *columns: str, right: tuple[str, ...] = (), kept: tuple[str, ...] = ()) -> Table:
    """A table that fits 80 columns as long as the cells that are not ``kept`` can be folded."""
    made = Table(title=cell(title, "bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold", header_style="dim", no_wrap=column in kept)
    return made


def bar(share: float, width: int) -> Text:
    """A share of one as a bar."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (BLOCKS[rest] if rest else "")
    colour = "red" if share >= 0.9 else "yellow" if share >= 0.6 else "green"
    return Text(drawn, style=colour) + Text("·" * (width - len(drawn)), style="dim")


def percent(share: float) -> str:
    """Never 100 % before everything is spent, never 0 % after the first charge."""
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{min(share * 100, 99.9) if share < 1 else share * 100:.1f} %"


def share_of(statement: Statement) -> float:
    """Return the share of a budget that is spent, in its present period."""
    return share_spent(statement.budget.filter, statement.spent)


def room(statement: Statement) -> str:
    """What is left of a budget: the largest ε that a question with the usual δ can ask for, and what is behind it."""
    budget = statement.budget
    payer = Payer(terms=budget.filter, room=statement.left)
    return tell_room(payer, delta=budget.delta / 100, failure=bool(budget.delta))


def amount(counted: Filter, spent: Charge | Spent) -> str:
    """Units for a person, in each sum that an account counts in."""
    beside = f", δ₀ = {units(spent.failure, DELTA_UNIT)}" if spent.failure else ""
    return words_of(counted, spent) + beside


def units(count: int, unit: Fraction) -> str:
    """A number of units as a decimal number."""
    return number(count * unit)


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Show a bar on stderr, only at a terminal, and once there is something to report."""
    shown = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
        disable=not console(stderr=True).is_terminal,
    )
    with shown:
        task = shown.add_task(what, total=None, visible=False)

        def report(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, visible=True)

        yield report


@contextmanager
def working(many: int) -> Iterator[Callable[[str], Callable[[str, float], None]]]:
    """Show a bar on stderr over a number of jobs, which report themselves what they are doing and their progress."""
    out = console(stderr=True)
    columns = (BarColumn(bar_width=20), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as shown:
        task, started = shown.add_task("", total=many), count()

        def job(name: str) -> Callable[[str, float], None]:
            place = next(started)

            def report(doing: str, share: float) -> None:
                words = shorten(f"{name}: {doing}", 60).plain.replace("[", r"\[")
                shown.update(task, completed=place + share, description=words)

            return report

        yield job


class _Clock(ProgressColumn):
    """The stage, its time and its time limit. Nothing else is known outside the engine, or shown."""

    def render(self, task: Task) -> Text:
        """Return nothing for an answer that comes at once."""
        seconds = task.elapsed or 0.0
        if seconds < 1:
            return Text("")
        stage = f"{shorten(task.description, 60)}: " if task.description else ""
        return Text(f"{stage}{seconds:.0f} s of at most {task.total or 0:g} s")


@contextmanager
def show_clock(limit: float) -> Iterator[None]:
    """Show a clock for each stage on stderr, only at a terminal; it goes when the answer is there."""
    from hubbub.session.stages import listen

    out = console(stderr=True)
    with Progress(_Clock(), console=out, transient=True, refresh_per_second=2, disable=not out.is_terminal) as shown:
        task = shown.add_task("", total=limit)

        def begin(stage: str) -> None:
            shown.reset(task, description=stage, total=limit)

        with listen(begin):
            yield
