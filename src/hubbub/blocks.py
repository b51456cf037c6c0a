"""Sample-and-aggregate over a database: any program, on blocks of units, through the gate.

hb.sample_and_aggregate(db.table("stays"), program, columns=["age", "cost"], blocks=100, bounds=(0, 500), epsilon=1)

The program sees the rows of one block as a dictionary of arrays, and never how many there are elsewhere. It runs in a
sandbox; what it says is clamped to the bounds. The charge is paid before the first row is read.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from hubbub.engines.blocks import made_up
from hubbub.engines.duckdb import size
from hubbub.engines.program import Program
from hubbub.engines.sandbox import Sandbox
from hubbub.errors import ParameterError
from hubbub.ledger import Ask
from hubbub.ledger.entry import canonical
from hubbub.mechanisms.subsample import BlockMean, BlockMedian, changed_blocks
from hubbub.meter import Meter, Reply, answered
from hubbub.parameters import Real, interval, positive, whole
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.frame import Frame
from hubbub.query.rows import rows_of
from hubbub.query.terms import quoted
from hubbub.release import served_again
from hubbub.secret import Facts, Secret
from hubbub.session import Database

Bounds = tuple[Real, Real]
_HOWS: dict[str, type[BlockMean | BlockMedian]] = {"mean": BlockMean, "median": BlockMedian}
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockAnswer:
    """What came out: one number for each that the program gives."""

    values: tuple[float, ...]
    margins: tuple[float | None, ...]
    """How far the noise may have moved each from the mean over the blocks, with 95% confidence; None for medians, whose
    error is one of rank. How far blocks are from the whole is not in it, and cannot be known."""
    blocks: int
    how: str
    epsilon: Fraction
    entry: int
    """The charge in the ledger that paid for it."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    def __repr__(self) -> str:
        shown = [
            f"{value:.6g}" + ("" if margin is None else f" ± {margin:.3g}")
            for value, margin in zip(self.values, self.margins, strict=True)
        ]
        paid = f"ε = {float(self.epsilon):g}, entry {self.entry}{served_again(self.stored, before=', ')}"
        return f"{', '.join(shown)} ({self.how} of {self.blocks} blocks, {paid})"


def sample_and_aggregate(
    frame: Frame,
    program: Callable[[dict[str, Any]], Any] | Sequence[str],
    *,
    blocks: int,
    bounds: Bounds | Sequence[Bounds],
    epsilon: Real,
    columns: Sequence[str] | None = None,
    how: str = "mean",
    seconds: float = 5.0,
    memory: int | None = None,
    key: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BlockAnswer:
    """Run the program on each block and release the mean or the median of what it says, within the bounds.

    ``columns`` are those that the program sees: all of the table but the unit's, unless they are named. It takes
    (blocks / lanes) · (seconds + loading), whatever the data is; ``progress`` is told how many slots are over. How many
    lanes there are the owner declares, and how much ``memory`` a program may have at most: both in the policy's limits.
    """
    db = frame.asker
    if not isinstance(db, Database):
        raise ParameterError("frame", "a table of an open database, db.table(…)", type(frame).__name__)
    db.check_grant()
    if how not in _HOWS:
        raise ParameterError("how", '"mean" or "median"', how)
    ends = _ends(bounds)
    share = whole_units_rounded_down(positive("epsilon", epsilon) / len(ends))
    mechanisms: list[BlockMean | BlockMedian] = [
        _HOWS[how](epsilon=share, bounds=one, blocks=blocks, neighbors=db.policy.budget.neighbors) for one in ends
    ]
    text = frame.rows_sql(*(_all_columns(frame, db) if columns is None else columns))
    relation, named = rows_of(text, db)
    source, most = Program.of(program), size(db.policy.limits.memory)
    sandbox = Sandbox(
        program=source,
        width=len(ends),
        rehearsal=made_up(named),
        seconds=float(positive("seconds", seconds)),
        memory=most if memory is None else whole("memory", memory, least=1 << 20, most=most),
        lanes=db.policy.limits.lanes,
    )
    run = db.blocks(relation, named, blocks=blocks)
    sandbox.check()
    question = {
        "blocks": blocks,
        "bounds": [[str(end) for end in one] for one in ends],
        "how": how,
        "program": {"name": source.name, "sha256": hashlib.sha256(source.text.encode()).hexdigest()},
        "rows": text,
        "seconds": sandbox.seconds,
    }
    ask = Ask(
        account=db.policy.account,
        question="sample and aggregate " + canonical(question),
        events=tuple(one.event for one in mechanisms),
        epsilon=whole_units_rounded_down(positive("epsilon", epsilon)),
        delta=Fraction(0),
        principal=db.principal,
        policy=db.policy.fingerprint,
        version=db.policy.version,
        key=key,
    )

    def work(meter: Meter) -> str:
        over = 0

        def tick() -> None:
            nonlocal over
            over += 1
            if progress is not None:
                progress(over, blocks)

        said = sandbox.outputs(run, blocks=blocks, tick=tick)
        facts = Facts(
            account=db.policy.account,
            sensitivity=Sensitivity(blocks=changed_blocks(db.policy.budget.neighbors)),
            neighbors=db.policy.budget.neighbors,
            grid=None,
        )
        drawn = []
        for place, mechanism in enumerate(mechanisms):
            outputs = tuple(None if one is None else one[place] for one in said)
            drawn.append(float(meter.measure(mechanism, Secret(outputs, facts)).value))
        return json.dumps(drawn)

    def present(reply: Reply) -> BlockAnswer:
        margins = [one.error(beta=(1 - CONFIDENCE) / len(ends)) if how == "mean" else None for one in mechanisms]
        return BlockAnswer(
            values=tuple(json.loads(reply.answer)),
            margins=tuple(margins),
            blocks=blocks,
            how=how,
            epsilon=ask.epsilon or Fraction(0),
            entry=reply.entry,
            stored=reply.stored,
        )

    return answered(db.ledger, ask, work, present=present, log=db.log)


def _all_columns(frame: Frame, db: Database) -> list[str]:
    """Every column of a declared table but the unit's."""
    table = db.policy.tables.get(frame.name)
    if table is None or frame.source != quoted(frame.name):
        raise ParameterError("columns", "named, where the frame is more than one declared table", frame.name)
    return [column.name for column in table.columns if column.name != table.unit]


def _ends(bounds: Any) -> list[tuple[Fraction, Fraction]]:
    """One pair, or several."""
    several = isinstance(bounds, Sequence) and bool(bounds) and all(isinstance(one, Sequence) for one in bounds)
    return [interval("bounds", one) for one in (bounds if several else [bounds])]
