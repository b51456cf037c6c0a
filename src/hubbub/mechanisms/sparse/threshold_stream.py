"""A sparse vector whose questions come one by one: the noisy threshold waits, and nobody sees it."""

import threading
from dataclasses import dataclass
from typing import Any, NoReturn

from hubbub import noise
from hubbub.errors import ParameterError, SecretError, WatchOver
from hubbub.mechanisms.integers import as_integers
from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.noise.entropy import generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """A question was called above: by how much, and its number where that was bought."""

    gap: Any
    number: Any = None


class Stream:
    """One run of a SparseVector: asks go on until ``count`` of them were above.

    Who knew the noisy threshold, or could ask two copies of it, would have more answers than were paid for. So a stream
    cannot be copied or stored, and does not answer in a forked process.

    Privacy:
        Claim: all answers together are one draw of ``mechanism``, whatever the questions were chosen by.
        Proof: the proof of SparseVector goes step by step, each given the answers before it.
        Needs: questions that fit the mechanism, which the gate sees to; one stream for one noisy threshold.
        Ref: Vadhan, Wang 2021: other answers may be drawn in between, since an interactive mechanism of pure ε is
            randomized response, post-processed.
    """

    __slots__ = ("__bars", "__failed", "__home", "__lock", "__mechanism", "__spare")

    def __init__(self, mechanism: SparseVector) -> None:
        if not isinstance(mechanism, SparseVector):
            raise ParameterError("mechanism", "a SparseVector", type(mechanism).__name__)
        self.__mechanism = mechanism
        self.__home = generation()
        self.__lock = threading.Lock()
        self.__failed = False
        self.__bars: list[int] = mechanism.bars(1)[0].tolist()[::-1]
        self.__spare: list[int] = mechanism.spare(1)[0].tolist()

    @property
    def mechanism(self) -> SparseVector:
        """The mechanism that was paid for."""
        return self.__mechanism

    @property
    def left(self) -> int:
        """The number of answers above that are still paid for."""
        return len(self.__bars)

    def check(self) -> None:
        """Refuse a stream that is over, or that belongs to another process."""
        if self.__home != generation():
            raise SecretError(
                "A watch answers only in the process that opened it: two copies would give twice as much."
            )
        if self.__failed:
            raise WatchOver("This watch has ended with a failure. Open another one.", count=self.mechanism.count)
        if not self.__bars:
            count = self.mechanism.count
            raise WatchOver(f"This watch has found all {count} that it was paid for. Open another one.", count=count)

    def end(self) -> None:
        """Answer nothing more: a failure releases something, and one is all that a charge may release."""
        self.__failed = True

    def ask(self, value: int) -> Above | None:
        """Compare one more answer with the noisy threshold; return None if it is not above."""
        self.check()
        exact = as_integers(value)
        if not isinstance(exact, int):
            raise ParameterError("value", "a whole number", type(value).__name__)
        with self.__lock:
            self.check()
            gap = exact + noise.geometric(scale=self.mechanism.question_scale) - self.__bars[-1]
            if gap < 0:
                return None
            self.__bars.pop()
            return Above(gap=gap, number=exact + self.__spare.pop() if self.__spare else None)

    def __repr__(self) -> str:
        return f"<Stream of {self.mechanism}, {self.left} left>"

    def _refuse(self, *_: object) -> NoReturn:
        raise SecretError("A watch cannot be copied or stored: two copies would give twice as much as was paid for.")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse
