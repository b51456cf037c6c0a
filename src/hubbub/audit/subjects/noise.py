"""Noise as a subject: drawn once, from the system's own randomness and from nothing else, by the law that is stated.

Two holders that draw the same wide noise have shared a stream: it is so wide that honest draws are equal once in a
billion audits. Whether draws are independent, and ``repeat`` and ``draw`` of one law, is counted, at a false-alarm rate
of 1e-6 for all of it together.
"""

import copy
import os
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects.gate.children import wait_for_end
from hubbub.errors import EntropyError
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.specimens.registry import build_specimens
from hubbub.mechanisms.specimens.specimen import Specimen
from hubbub.noise import entropy
from hubbub.privacy.sensitivity import Norm
from hubbub.testing.replay import replayed

_WIDE = Geometric(epsilon=Fraction(1, 1 << 40))
_BROAD = Gaussian.at_rho(rho=Fraction(1, 1 << 80))
_ALARM = 1e-9
"""Of each single test: there are fewer than a thousand."""
_SINGLY, _AT_ONCE = 120, 4000
_FILLED = 10
"""How often a group is expected among the fewer draws, at least, for it to be compared."""
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")


def draw_widely() -> list[int]:
    """A dozen wide draws, by every way that bits are taken."""
    source = entropy.begin("audit", size=4)
    raw = [source.word() >> 2, *(int(one) >> 2 for one in entropy.words(source, 3))]
    wide = np.zeros(3, dtype=np.int64)
    several = [int(one) for noisy in (_WIDE.draw(wide), _BROAD.draw(wide)) for one in np.asarray(noisy)]
    return [*raw, *several, int(_WIDE.draw(0)), int(_BROAD.draw(0))]


def _find_shared(holders: Sequence[Sequence[int]], what: str) -> Iterator[str]:
    times = Counter(one for held in holders for one in held)
    if max(times.values()) > 1:
        yield f"{what}: of {sum(times.values())} wide draws, {sum(n for n in times.values() if n > 1)} are the same."


def _try_forks() -> Iterator[str]:
    """Parent, children and a grandchild, the parent's stream in use before."""
    if not hasattr(os, "fork"):
        return
    holders = [draw_widely()]
    for grand in (False, False, True):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if grand and os.fork():
                    os._exit(0)
                own = draw_widely()
                os.write(tell, struct.pack(f"<{len(own)}q", *own))
            finally:
                os._exit(0)
        os.close(tell)
        raw = b"".join(iter(lambda pipe=told: os.read(pipe, 4096), b""))  # type: ignore[misc]
        os.close(told)
        wait_for_end(child)
        holders += [list(struct.unpack(f"<{len(raw) // 8}q", raw)), draw_widely()]
    if not all(holders):
        yield "After a fork: a child could draw nothing."
    yield from _find_shared(holders, "After a fork")


def _try_threads() -> Iterator[str]:
    """Threads that start together, and again after these have ended."""
    holders: list[list[int]] = [draw_widely()]
    for _ in range(2):
        together = threading.Barrier(4)

        def work(gate: threading.Barrier = together) -> None:
            gate.wait()
            holders.append(draw_widely())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    yield from _find_shared(holders, "In threads")


def _try_copies() -> Iterator[str]:
    """A copy of a source is refused, or draws something else; so does the copy of a mechanism."""
    source: Any = entropy.begin("audit")
    ways: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy, lambda held: held.__reduce_ex__(4))
    stream = getattr(source, "_stream", None)
    for held in (source, *([stream()] if callable(stream) else [])):
        for way in ways:
            try:
                other = way(held)
            except (EntropyError, TypeError):
                continue
            if not hasattr(other, "word"):
                yield f"A {type(held).__name__} lets itself be stored."
            elif [held.word() for _ in range(4)] == [other.word() for _ in range(4)]:
                yield f"A copy of a {type(held).__name__} draws the same noise."
    for mechanism in (_WIDE, _BROAD):
        twins = [mechanism, copy.copy(mechanism), copy.deepcopy(mechanism)]
        yield from _find_shared([[int(twin.draw(0)) for _ in range(3)] for twin in twins], "Copies of a mechanism")


def _try_stopped_clock() -> Iterator[str]:
    """The clock stands still and every generator that can be seeded is seeded alike: noise must not care."""
    holders: list[list[int]] = [draw_widely()]
    for _ in range(2):
        with _same_start():
            holders.append(draw_widely())
            thread = threading.Thread(target=lambda: holders.append(draw_widely()))
            thread.start()
            thread.join()
    yield from _find_shared(holders, "With the clock stopped and other generators seeded")


def _second() -> float:
    return 1e9


def _whole_second() -> int:
    return 10**18


@contextmanager
def _same_start() -> Iterator[None]:
    """Clocks that stand still, and Python's and NumPy's own generators at one seed; all is put back."""
    clocks = {name: getattr(time, name) for name in _CLOCKS}
    plain, numeric = sys.modules.get("random"), sys.modules.get("numpy.random")
    before = plain.getstate() if plain else None, numeric.get_state() if numeric else None
    try:
        for name in _CLOCKS:
            setattr(time, name, _whole_second if name.endswith("ns") else _second)
        for module in (plain, numeric):
            if module is not None:
                module.seed(7)
        yield
    finally:
        for name, clock in clocks.items():
            setattr(time, name, clock)
        if plain is not None:
            plain.setstate(before[0])
        if numeric is not None:
            numeric.set_state(before[1])


def _try_replay(specimens: Sequence[Specimen]) -> Iterator[str]:
    """From the same bits, the same answers: nothing else is drawn from."""
    for one in specimens:
        told = []
        for _ in range(2):
            with replayed(3) as source:
                answers = [one.cell(one.mechanism.draw(one.pair[0])) for _ in range(3)]
                told.append(repr((answers, source.draws)))
        if told[0] != told[1]:
            yield f"{one.name}: the same bits gave other answers, so that it draws from something else too."


def _lawful(specimens: Sequence[Specimen]) -> Iterator[str]:
    """``draw`` and ``repeat`` of one law, and each answer independent of the one before it."""
    for one in specimens:
        exact, mechanism = one.pair[0], one.mechanism
        singly = [one.cell(mechanism.draw(exact)) for _ in range(_SINGLY)]
        at_once = [one.cell(answer) for answer in mechanism.repeat(exact, times=_AT_ONCE)]
        half = _AT_ONCE // 2
        if _unlike(singly, at_once[half:], _groups(at_once[:half])) < _ALARM:
            yield f"{one.name}: draw and repeat are not of one law."
        for how, answers in (("draw", singly), ("repeat", at_once)):
            if _tie_p_value(answers) < _ALARM:
                yield f"{one.name}: an answer by {how} depends on the one before it."
        if mechanism.needs.norm in (Norm.L1, Norm.L2) and isinstance(exact, int) and mechanism.needs.integers:
            places = list(np.asarray(mechanism.draw(np.full(half, exact))).tolist())
            if _tie_p_value(places) < _ALARM:
                yield f"{one.name}: the noise in one place depends on that in another."


def _groups(answers: Sequence[Hashable]) -> dict[Hashable, int]:
    """Answers in at most four groups of about equal size."""
    found, so_far = {}, 0
    for answer, times in sorted(Counter(answers).items(), key=lambda item: repr(item[0])):
        found[answer] = min(3, 4 * so_far // len(answers))
        so_far += times
    return found


def _unlike(some: Sequence[Hashable], others: Sequence[Hashable], groups: dict[Hashable, int]) -> float:
    """The p-value of two samples being of one law, by groups that were made without either of them."""
    table = np.zeros((2, 5))
    for side, answers in enumerate((some, others)):
        for one in answers:
            table[side, groups.get(one, 4)] += 1
    table = table[:, table.sum(axis=0) >= _FILLED * len(others) / len(some)]
    if min(table.shape) < 2:
        return 1.0
    from scipy import stats  # late: it takes longer to load than most audits take

    return float(stats.chi2_contingency(table, lambda_="log-likelihood")[1])


def _tie_p_value(answers: Sequence[Hashable]) -> float:
    """The p-value of each answer being independent of its partner, two by two: exact, by Fisher."""
    groups = _groups(answers)
    table = np.zeros((2, 2), dtype=np.int64)
    for one, other in zip(answers[::2], answers[1::2], strict=False):
        table[groups[one] // 2, groups[other] // 2] += 1
    from scipy import stats

    return float(stats.fisher_exact(table)[1])


@dataclass(frozen=True, slots=True)
class NoiseScene:
    """Something that is tried."""

    about: str
    found: Callable[[], Iterator[str]]


@dataclass(frozen=True, slots=True)
class OfNoise:
    """All noise, in one respect."""

    name: str
    words: str
    scenes: Callable[[], Iterator[NoiseScene]]

    @property
    def claim(self) -> Claim:
        return replace(Claim.pure(1.0), words=self.words)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        yield from (Pair(x=scene, y=None, about=scene.about) for scene in self.scenes())

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return iter(())

    def faults(self, pair: Pair) -> list[str]:
        return list(pair.x.found())

    def answers(self, value: Any, *, times: int) -> Outputs:
        """A count of 0 or of 1, at ε = 1."""
        return Geometric(epsilon=Fraction(1)).repeat(0 if value is None else 1, times=times)

    def show_pair(self, pair: Pair) -> str:
        return f"tried: {pair.about}"


def _holders() -> Iterator[NoiseScene]:
    yield NoiseScene("processes that were forked", _try_forks)
    yield NoiseScene("threads", _try_threads)
    yield NoiseScene("copies", _try_copies)
    yield NoiseScene("a stopped clock and seeded generators", _try_stopped_clock)


def _of_each(check: Callable[[Sequence[Specimen]], Iterator[str]], each: int) -> Callable[[], Iterator[NoiseScene]]:
    def scenes() -> Iterator[NoiseScene]:
        specimens = build_specimens()
        for start in range(0, len(specimens), each):
            some = specimens[start : start + each]
            yield NoiseScene(", ".join(one.name for one in some), lambda held=some: check(held))  # type: ignore[misc]

    return scenes


def noises() -> list[OfNoise]:
    """The respects."""
    return [
        OfNoise("noise: fresh", "no two holders ever draw the same noise", _holders),
        OfNoise("noise: source", "noise comes from the one source and from nothing else", _of_each(_try_replay, 4)),
        OfNoise("noise: law", "draws are independent, and draw and repeat are of one law", _of_each(_lawful, 2)),
    ]
