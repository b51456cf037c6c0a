"""The gate as a subject: every way to an answer is walked, and cut short at every point.

Nothing is read before its charge is on disk; a failed look is charged too; an answer is on disk before anybody has it;
asked again, the same answer comes, and costs nothing; and no way is free.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects.gate.scenes import SCENES
from hubbub.audit.subjects.gate.town import ACCOUNT, POINTS, Crash, Disk, Town, seal, town
from hubbub.errors import EngineError, ProgramError
from hubbub.gate import meter
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Facts, Secret
from hubbub.ledger import Ask
from hubbub.ledger.entry import write
from hubbub.mechanisms import Geometric, SparseVector
from hubbub.noise import entropy
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.frame.aggregate_functions import count
from hubbub.session import first_over as first
from hubbub.session import sample_and_aggregate as blocks

EPSILON = Fraction(1, 2)
"""What every question is asked at."""
_GROUPED = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"
_SETS = "SELECT ward, count(*) AS n FROM stays GROUP BY ROLLUP (ward)"
_TOTALS = "SELECT ward, sum(cost) AS s FROM stays GROUP BY ward"
_TOTAL = "SELECT sum(cost) AS s FROM stays"
_ROUNDING = Fraction(1, 1 << 20)


def _by_meter(held: Town, version: str) -> Any:
    gate = Meter.on(held.ledger, version=version)
    return gate.measure(Geometric(epsilon=EPSILON), seal(held, 50), key=f"key {version}").value


def _by_watch(held: Town, version: str) -> Any:
    watch = Meter.on(held.ledger, version=version).watch(
        SparseVector(epsilon=EPSILON, threshold=20, count=1), account=ACCOUNT
    )
    return watch.ask(seal(held, 10**6))


def _prepaid(held: Town, version: str) -> Any:
    mechanism = Geometric(epsilon=EPSILON)
    ask = Ask(account=ACCOUNT, question="prepaid", events=(mechanism.event,), epsilon=EPSILON, version=version)
    reply = meter.answered(held.ledger, ask, lambda gate: write(gate.measure(mechanism, seal(held, 50)).value))
    return reply.answer


def _sql(held: Town, version: str) -> Any:
    return held.database(version=version).sql(_GROUPED, epsilon=EPSILON, key=f"key {version}").rows


def _by_choice(held: Town, version: str) -> Any:
    return held.database(version=version).sql("SELECT median(cost) AS m FROM stays", epsilon=EPSILON).rows


def _sets(held: Town, version: str) -> Any:
    return held.database(version=version).sql(_SETS, epsilon=EPSILON).rows


def _by_purchase(held: Town, version: str) -> Any:
    return held.database(version=version, bounds=False).sql(_TOTAL, epsilon=EPSILON).rows


def _by_question(held: Town, version: str) -> Any:
    return [one.rows for one in held.database(version=version).ask([_GROUPED, _TOTAL], epsilon=EPSILON)]


def _by_frame(held: Town, version: str) -> Any:
    return held.database(version=version).table("stays").group_by("ward").agg(n=count()).answer(epsilon=EPSILON).rows


def _by_diagnosis(held: Town, version: str) -> Any:
    text = "SELECT ward, sum(cost) AS s FROM stays GROUP BY ward"
    return held.database(version=version).diagnose(text, epsilon=EPSILON).rows


def _first(held: Town, version: str) -> Any:
    asking = held.database(version=version).table("stays").group_by("ward").agg(n=count())
    return first.first_over(asking, over=10, epsilon=EPSILON).found


def _block(rows: dict[str, Any]) -> float:
    return float(len(rows["cost"]))


def _blocks(held: Town, version: str) -> Any:
    frame = held.database(version=version).table("stays")
    told = blocks.sample_and_aggregate(
        frame, _block, columns=["cost"], blocks=1, bounds=(0, 64), epsilon=EPSILON, seconds=0.2
    )
    return told.values


WAYS: dict[str, Callable[[Town, str], Any]] = {
    "Meter.measure": _by_meter,
    "Meter.watch": _by_watch,
    "answered": _prepaid,
    "db.sql": _sql,
    "db.sql with a median": _by_choice,
    "db.sql with grouping sets": _sets,
    "db.sql that buys its bounds": _by_purchase,
    "db.ask": _by_question,
    "a frame's answer": _by_frame,
    "db.diagnose": _by_diagnosis,
    "first_over": _first,
    "sample_and_aggregate": _blocks,
}
_ONCE = ("Meter.watch",)
"""Not to be asked again: it goes on by itself."""
_IN_STEPS = ("db.sql that buys its bounds",)
"""Paid in several steps, of which the first may be cut short."""
WHOLE, FAILED = "", "the engine fails"
_FEW = dict.fromkeys(
    ("db.sql with a median", "db.sql with grouping sets", "a frame's answer", "sample_and_aggregate"),
    (WHOLE, "before storing"),
)
"""Those that go the way of another, or take their time: the points that are looked at."""
_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A way to an answer and the points at which it is cut short, or something else that is tried at the gate."""

    name: str
    points: tuple[str, ...] = ()
    more: int = 0
    """How many units there are beyond the ones made up: 0, and 1 for its neighbour."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Meter, ledger and session together."""

    name: str = "gate"

    @property
    def claim(self) -> Claim:
        words = "every answer is paid for on disk before anything is read, stored before it is told, and drawn once"
        return replace(Claim.pure(1.0), words=words)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        cut = (WHOLE, FAILED, *chance.shuffle(POINTS))
        yield from (_pair(Scene(name=name)) for name in SCENES)
        yield from (_pair(Scene(name=way, points=_FEW.get(way, cut))) for way in WAYS)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        scene: Scene = pair.x
        if len(scene.points) > 1:
            yield from (_pair(replace(scene, points=(point,))) for point in scene.points)

    def faults(self, pair: Pair) -> list[str]:
        scene: Scene = pair.x
        if scene.name in SCENES:
            return SCENES[scene.name]()[:_SENTENCES]
        with town() as held:
            found = (
                fault
                for place, point in enumerate(scene.points)
                for fault in _walk(held, scene.name, point, version=f"version {place}")
            )
            return list(islice(found, _SENTENCES))

    def answers(self, value: Any, *, times: int) -> Outputs:
        """A count through the gate at ε = 1, in as many places at once: their noise is independent."""
        gate = Meter({ACCOUNT: Budget(epsilon=Fraction(1))})
        facts = Facts(account=ACCOUNT, sensitivity=Sensitivity(l0=1, linf=Fraction(1)))
        held = Secret(np.full(times, 50 + value.more), facts)
        drawn: Outputs = gate.measure(Geometric(epsilon=Fraction(1)), held).value
        return drawn

    def show_pair(self, pair: Pair) -> str:
        scene: Scene = pair.x
        cut = [f"cut short: {point}" if point in POINTS else point for point in scene.points if point]
        return "\n".join([f"asked by {scene.name}" if scene.name in WAYS else scene.name, *cut])


def _pair(scene: Scene) -> Pair:
    return Pair(x=scene, y=replace(scene, more=1), about=scene.name)


class _NoNoise:
    """A generator that the process does not survive."""

    def __init__(self, held: Town) -> None:
        self._held = held

    def begin(self, kind: str, public: object) -> None:
        raise Crash("while drawing")

    def fill(self, out: memoryview) -> None:
        raise Crash("while drawing")

    def word(self) -> int:
        raise Crash("while drawing")


def _walk(held: Town, way: str, point: str, *, version: str) -> Iterator[str]:
    """Walk one way, interrupted or not: its release, and the contents of the disk."""
    before, held.seen = held.disk(), []
    held.broken_at, held.failing = point or None, point == FAILED
    told, error = _try_way(held, way, point, version)
    after = held.disk()
    if isinstance(error, ProgramError):
        return
    if any(look.cost <= before.cost for look in held.seen):
        yield "The data was read before any charge for it was on disk."
        return
    if held.seen and held.seen[-1].cost < after.cost:
        yield "A charge was written after the data had been read."
    if point != WHOLE:
        yield from _cut_short(held, way, point, version=version, before=before, error=error)
        return
    paid, charges = after.cost - before.cost, len(after.charges) - len(before.charges)
    if error is not None:
        yield f"It ended with {type(error).__name__}: {error}"
        return
    if not held.seen:
        yield "An answer came without a look at the data."
    if not EPSILON - _ROUNDING <= paid <= EPSILON:
        yield f"It was asked at ε = {float(EPSILON):g}, and ε = {float(paid):g} was charged."
    if len(after.answers) - len(before.answers) != charges:
        yield "An answer was told, and not every charge has one on disk."
    if way not in _ONCE:
        yield from _ask_again(held, way, version=version, told=told)


def _ask_again(held: Town, way: str, *, version: str, told: Any) -> Iterator[str]:
    looks, spent = len(held.seen), held.disk().cost
    again, error = _try_way(held, way, WHOLE, version)
    if error is not None or repr(again) != repr(told):
        yield "Asked again, another answer came."
    if held.disk().cost != spent or len(held.seen) != looks:
        yield "Asked again, it was charged or read again."


def _cut_short(
    held: Town, way: str, point: str, *, version: str, before: Disk, error: Exception | None
) -> Iterator[str]:
    """Check that a paid charge stays paid, nothing is released, and asking again gives one answer for one price."""
    if error is None:
        yield "An answer was told although it could not be read, drawn or stored."
    elif not isinstance(error, Crash | EngineError):
        yield f"It ended with {type(error).__name__}: {error}"
    if held.seen and held.disk().cost == before.cost:
        yield "The data was read and nothing is charged."
    held.reopen()
    if way in _ONCE:
        return
    looks = len(held.seen)
    _, error = _try_way(held, way, WHOLE, version)
    after = held.disk()
    if error is not None:
        yield f"Asked again after that, it ended with {type(error).__name__}: {error}"
    elif abs(after.cost - before.cost - EPSILON) > _ROUNDING:
        yield f"Asked again after that, ε = {float(after.cost - before.cost):g} is charged in all, not {EPSILON}."
    if point == "after storing" and way not in _IN_STEPS and len(held.seen) > looks:
        yield "Asked again after its answer was stored, it was drawn a second time."
    if len({one["charge"] for one in after.answers}) < len(after.answers):
        yield "One charge has two stored answers."


def _try_way(held: Town, way: str, point: str, version: str) -> tuple[Any, Exception | None]:
    try:
        if point == "while drawing":
            with entropy.substitute(_NoNoise(held)):
                return WAYS[way](held, version), None
        return WAYS[way](held, version), None
    except Exception as error:  # whatever it is, whoever asks sees it
        return None, error
