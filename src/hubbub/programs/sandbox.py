"""A program on blocks of rows, each in a world of its own that can do nothing but compute.

Every block has its slot on a schedule that is known before the first row is read: it gets its rows when the slot
begins, and when the slot ends its answer is taken, if there is one, and its processes are killed. Sending the rows and
receiving the answer are part of the slot. The next program is loaded between two slots, in a time that is fixed as
well. How long a program took, how large its block was or whether it crashed shows in nothing but its own output.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hubbub.errors import ProgramError
from hubbub.programs.program import Program
from hubbub.programs.runner import Runner
from hubbub.programs.wire import Output, Rows, decode, encode

_START = 120.0
"""Seconds for loading a program before the first row is read."""
_AGAIN, _SPARE = 2.0, 1.0
"""Seconds for loading it again, between two slots: twice what the first loading took, and 1 more, in which the
processes of the block before come to their end. Chosen by hand: a block whose program is late has no answer, so both
are generous, and larger ones make everything slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The environment in which programs run. Only on Linux, where the kernel gives each a world of its own: elsewhere
    it refuses.

    Privacy:
        Claim: a block's output is a function of the block's rows, of the program, and of chance.
        Proof: the process of a block is made anew, from things that are the same for all blocks, and gets its rows
            last. What it can call concerns itself or reads files that cannot change (``sandboxed.calls``); it sees no
            clock and has no second thread; it is killed before the next one of its lane is made. When its slot begins
            and ends depends on the number of the block alone.
        Needs: the kernel's namespaces, mounts, seccomp and ptrace; one lane, or an owner who accepts that programs side
            by side can feel each other through the processor. Caches outlive a process: see SECURITY.md.
        Ref: Mohan et al. 2012 (GUPT), for constant time and isolated blocks.
    """

    program: Program
    width: int
    """How many numbers it gives."""
    rehearsal: Rows
    """Made-up rows: the program sees them before the doors close, so that it loads what it loads late."""
    seconds: float = 5.0
    memory: int = 4 << 30
    lanes: int = 1
    """How many blocks run at once."""

    def check(self) -> None:
        """Load the program once, without any rows; ProgramError says why it cannot be. Nothing private is involved."""
        self._load(lane=0, seconds=_START).stop(wait=True)

    def outputs(
        self, read: Callable[[], Sequence[Rows]], *, blocks: int, tick: Callable[[], None] | None = None
    ) -> list[Output]:
        """Return the program's answer for each block; None where there is none in time.

        The first programs are loaded before ``read`` is called for the rows. So the time that this takes, from which
        the schedule follows, depends on nothing private.
        """
        answers: list[Output] = [None] * blocks
        lanes = min(self.lanes, blocks)

        def run(lane: int, first: Runner | None, bodies: Sequence[bytes | None], schedule: Schedule) -> None:
            runner, ending = first, list[Runner]()
            for turn, block in enumerate(range(lane, blocks, lanes)):
                if turn:
                    runner = self._load_again(lane, until=schedule.begin(turn))
                _sleep_until(schedule.begin(turn))
                answers[block] = self._ask(runner, bodies[block], until=schedule.end(turn))
                _sleep_until(schedule.end(turn))
                if runner is not None:
                    runner.stop()
                    ending = [*(earlier for earlier in ending if not earlier.has_ended()), runner]
                if tick is not None:
                    tick()
            for runner in ending:
                runner.stop(wait=True)

        # A process dies with the thread that started it: those of the pool live until all is done.
        with ThreadPoolExecutor(lanes) as pool:
            begun = time.monotonic()
            runners = list(pool.map(lambda lane: self._load_again(lane, until=begun + _START), range(lanes)))
            loading = _SPARE + _AGAIN * (time.monotonic() - begun)
            try:
                bodies = [encode(rows, command=bool(self.program.command)) for rows in read()]
                schedule = Schedule(start=time.monotonic(), seconds=self.seconds, loading=loading)
                running = [pool.submit(run, lane, runners[lane], bodies, schedule) for lane in range(lanes)]
                for lane in running:
                    lane.result()
            finally:
                for runner in runners:
                    if runner is not None:
                        runner.stop(wait=True)
        return answers

    def _load(self, *, lane: int, seconds: float) -> Runner:
        order = {
            "program": {"text": self.program.text, "name": self.program.name},
            "command": list(self.program.command),
            "rehearsal": self.rehearsal,
            "memory": self.memory,
            "width": self.width,
        }
        return Runner(order, lane=lane, seconds=seconds)

    def _load_again(self, lane: int, *, until: float) -> Runner | None:
        """Load what could be loaded before; None if it cannot be now, or not in time."""
        try:
            return self._load(lane=lane, seconds=until - time.monotonic())
        except ProgramError:
            return None

    def _ask(self, runner: Runner | None, body: bytes | None, *, until: float) -> Output:
        if runner is None or body is None:
            return None
        return decode(runner.ask(body, until=until), width=self.width, command=bool(self.program.command))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The times at which the slots of a lane begin and end, all known before the first."""

    start: float
    seconds: float
    loading: float

    def begin(self, turn: int) -> float:
        """Return the time at which the block of this turn gets its rows: the first at once, others
        after loading their program.
        """
        return self.start + turn * (self.seconds + self.loading)

    def end(self, turn: int) -> float:
        """Return the time at which its answer is taken."""
        return self.begin(turn) + self.seconds


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))
