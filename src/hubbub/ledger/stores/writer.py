"""One thread that writes, for everyone in the process: whoever waits together is committed together.

An fsync takes as long for one charge as for a hundred, so the thread takes all that is waiting, does each piece of
work in one transaction, and answers all of them after the one commit. Nobody is answered before it.

A piece of work checks first and writes last. One that raises has written nothing; if it has, the whole transaction is
undone and the others are done again without it. When a commit's fate is unknown (a connection cut after COMMIT was
sent) everything is done again too: work finds what it has already written by its key, since the sole right to write is
only given once the lost transaction has ended, one way or the other.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from hubbub.errors import HubbubError, LedgerCorrupt, LedgerError, LedgerUnreachable
from hubbub.ledger.book import Transaction
from hubbub.ledger.stores.store import Head, Interrupted, Store, StoreSession

T = TypeVar("T")

_BATCH = 256
_LINGER = 0.0003
"""How long to wait for more where several came last time: about as long as a sync takes."""
_PAUSE = 0.05
"""Between attempts to reach a server that has gone away."""


@dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[Transaction], Any]
    outcome: "Future[Any]"


class Writer:
    """``admit`` is shown each transaction before anything is done in it, and raises where the ledger is not the one to
    build on; ``committed`` is told each new head after the commit and before anyone is answered.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], int],
        admit: Callable[[Transaction], None],
        committed: Callable[[Head], None],
        patience: float,
    ) -> None:
        self._store, self._clock, self._patience = store, clock, patience
        self._admit, self._committed = admit, committed
        self._session: StoreSession | None = None
        self._broken: LedgerError | None = None
        self._told: Head | None = None
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closed = False
        self._gate = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="hubbub-ledger", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Do the work in a transaction of its own or of many; return when it is durable."""
        return self.wait(self.submit(work))

    def submit(self, work: Callable[[Transaction], T]) -> "Future[T]":
        """Have the work done in a transaction of its own or of many."""
        outcome: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise LedgerUnreachable(f"The ledger {self._store.location} was closed. Open it again.")
            self._tasks.put(_Task(work, outcome))
        return outcome

    def wait(self, outcome: "Future[T]") -> T:
        """Return what submitted work has come to once it is durable."""
        try:
            return outcome.result(timeout=2 * self._patience)
        except TimeoutError:
            outcome.cancel()
            raise LedgerUnreachable(
                f"The ledger {self._store.location} did not answer within {2 * self._patience:g} seconds: another "
                "program holds it. What was asked may have been charged; ask again with the same key."
            ) from None

    def close(self) -> None:
        """Finish all waiting work, then stop; a thread that waits for a program that was stopped is left behind."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._tasks.put(None)
        self._thread.join(timeout=2 * self._patience)

    def _serve(self) -> None:
        ending = crowded = False
        while not ending:
            batch = [self._tasks.get()]
            if crowded:  # those who were just answered come back with their next
                time.sleep(_LINGER)
            while len(batch) < _BATCH and not self._tasks.empty():
                batch.append(self._tasks.get())
            ending, crowded = None in batch, len(batch) > 1
            waiting = [task for task in batch if task is not None and task.outcome.set_running_or_notify_cancel()]
            if waiting:
                self._write(waiting)
        self._drop_session()

    def _write(self, tasks: list[_Task]) -> None:
        deadline = time.monotonic() + self._patience
        while tasks:
            try:
                tasks = self._attempt(tasks)
            except Interrupted as problem:
                self._drop_session()
                if time.monotonic() < deadline:
                    time.sleep(_PAUSE)
                    continue
                error: HubbubError = LedgerUnreachable(
                    f"The ledger {self._store.location} went away and did not come back within {self._patience:g} "
                    f"seconds ({problem}). What was asked may have been charged; ask again with the same key."
                )
                return _fail(tasks, error)
            except LedgerError as problem:
                if problem.operands.get("final") or isinstance(problem, LedgerCorrupt):
                    self._broken = problem
                    self._drop_session()
                return _fail(tasks, problem)
            except BaseException as problem:
                self._drop_session()
                return _fail(tasks, problem)

    def _attempt(self, tasks: list[_Task]) -> list[_Task]:
        """Commit what can be committed, answer it, and give back what has to be done again."""
        if self._broken is not None:
            raise self._broken
        if self._session is None:
            self._session = self._store.writer()
        session = self._session
        done: list[tuple[_Task, Any]] = []
        refused: list[tuple[_Task, Exception]] = []
        session.begin()
        try:
            transaction = Transaction(session, clock=self._clock)
            self._admit(transaction)
            for task in tasks:
                before = transaction.head
                try:
                    done.append((task, task.work(transaction)))
                except (LedgerError, Interrupted):
                    raise
                except Exception as problem:
                    if transaction.head is not before:
                        session.rollback()
                        _fail([task], problem)
                        return [other for other in tasks if other is not task]
                    refused.append((task, problem))
            if transaction.close():
                session.commit()
            else:
                session.rollback()
            if transaction.head != self._told:  # also without a commit: who wrote it may have died before telling
                self._committed(transaction.head)
                self._told = transaction.head
        except BaseException:
            session.rollback()
            raise
        for task, refusal in refused:
            _fail([task], refusal)
        for task, result in done:
            task.outcome.set_result(result)
        return []

    def _drop_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _fail(tasks: list[_Task], problem: BaseException) -> None:
    for task in tasks:
        task.outcome.set_exception(problem)
