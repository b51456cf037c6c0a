"""Sample-and-aggregate over a database: any program, on blocks of units, through the gate.

hb.sample_and_aggregate(db.table("stays"), program, columns=["age", "cost"], blocks=100, bounds=(0, 500), epsilon=1)

The program sees the rows of one block as a dictionary of arrays, and never how many there are elsewhere. It runs in a
sandbox; what it says is clamped to the bounds. The charge is paid before the first row is read.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any

from hubbub.engines.duckdb.engine import size
from hubbub.engines.lower.blocks import make_up_rows
from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter, Reply
from hubbub.gate.release import note_age
from hubbub.gate.secret import Facts, Sealed, Secret
from hubbub.ledger.entry import canonical
from hubbub.mechanisms.local_sensitivity.subsample import BlockMean, BlockMedian, count_changed_blocks
from hubbub.parameters import Real, interval, positive, whole
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.programs.program import Program
from hubbub.programs.sandbox import Sandbox
from hubbub.query.frame.columns import quote
from hubbub.query.frame.frame import Frame
from hubbub.query.requests import BlockRows
from hubbub.session.database import Database
from hubbub.session.job import Job

Bounds = tuple[Real, Real]
_HOWS: dict[str, type[BlockMean | BlockMedian]] = {"mean": BlockMean, "median": BlockMedian}
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockAnswer:
    """The answer of a program on blocks: one number for each that the program gives."""

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
        paid = f"ε = {float(self.epsilon):g}, entry {self.entry}{note_age(self.stored, before=', ')}"
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
    price = whole_units_rounded_down(positive("epsilon", epsilon))

    def price_at(epsilon: Fraction) -> list[BlockMean | BlockMedian]:
        share = whole_units_rounded_down(epsilon / len(ends))
        neighbors = db.policy.budget.neighbors
        return [_HOWS[how](epsilon=share, bounds=one, blocks=blocks, neighbors=neighbors) for one in ends]

    mechanisms = price_at(price)
    text = frame.rows_sql(*(_all_columns(frame, db) if columns is None else columns))
    relation, named = db.read_rows(text)
    source, most = Program.of(program), size(db.policy.limits.memory)
    sandbox = Sandbox(
        program=source,
        width=len(ends),
        rehearsal=make_up_rows(named),
        seconds=float(positive("seconds", seconds)),
        memory=most if memory is None else whole("memory", memory, least=1 << 20, most=most),
        lanes=db.policy.limits.lanes,
    )
    request = BlockRows(relation=relation, columns=named, blocks=blocks)
    sandbox.check()
    question = {
        "blocks": blocks,
        "bounds": [[str(end) for end in one] for one in ends],
        "how": how,
        "program": {"name": source.name, "sha256": hashlib.sha256(source.text.encode()).hexdigest()},
        "rows": text,
        "seconds": sandbox.seconds,
    }

    def present(reply: Reply) -> BlockAnswer:
        drawn_at, beta = reply.epsilon or price, (1 - CONFIDENCE) / len(ends)
        margins = [one.error(beta=beta) if how == "mean" else None for one in price_at(drawn_at)]
        return BlockAnswer(
            values=tuple(json.loads(reply.answer)),
            margins=tuple(margins),
            blocks=blocks,
            how=how,
            epsilon=drawn_at,
            entry=reply.entry,
            stored=reply.stored,
        )

    job = Job(
        question="sample and aggregate " + canonical(question),
        policy=db.policy,
        events=tuple(one.event for one in mechanisms),
        epsilon=price,
        delta=Fraction(0),
        requests=(request,),
        measure=lambda read, meter: _measure_blocks(
            read(request), meter, sandbox=sandbox, mechanisms=mechanisms, blocks=blocks, policy=db.policy, tick=progress
        ),
        present=present,
    )
    return db.run(job, key=key)


def _measure_blocks(
    rows: Sealed[Any],
    meter: Meter,
    *,
    sandbox: Sandbox,
    mechanisms: Sequence[BlockMean | BlockMedian],
    blocks: int,
    policy: Policy,
    tick: Callable[[int, int], None] | None,
) -> str:
    """Run the program on every block under the seal, and measure each of its numbers over all blocks."""
    slots = itertools.count(1)

    def count_slot() -> None:
        if tick is not None:
            tick(next(slots), blocks)

    outputs = rows.map(lambda dealt: sandbox.outputs(lambda: dealt, blocks=blocks, tick=count_slot))
    neighbors = policy.budget.neighbors
    facts = Facts(
        account=policy.account,
        sensitivity=Sensitivity(blocks=count_changed_blocks(neighbors)),
        neighbors=neighbors,
        grid=None,
    )
    drawn = []
    for place, mechanism in enumerate(mechanisms):
        own = outputs.map(partial(_of_all_blocks, place))
        drawn.append(float(meter.measure(mechanism, Secret(own, facts)).value))
    return json.dumps(drawn)


def _of_all_blocks(place: int, outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Take one of the program's numbers from every block; None where a block gave none."""
    return tuple(None if numbers is None else numbers[place] for numbers in outputs)


def _all_columns(frame: Frame, db: Database) -> list[str]:
    """Every column of a declared table but the unit's."""
    table = db.policy.tables.get(frame.name)
    if table is None or frame.source != quote(frame.name):
        raise ParameterError("columns", "named, where the frame is more than one declared table", frame.name)
    return [column.name for column in table.columns if column.name != table.unit]


def _ends(bounds: Any) -> list[tuple[Fraction, Fraction]]:
    """One pair, or several."""
    several = isinstance(bounds, Sequence) and bool(bounds) and all(isinstance(one, Sequence) for one in bounds)
    return [interval("bounds", one) for one in (bounds if several else [bounds])]
