"""Random words: an AES-256-CTR keystream keyed by the operating system, one stream a thread, new after a fork.

``os.urandom`` is the root of trust; the keystream only stretches it, because the system call is some twenty times
slower than AES. A stream takes a new key from the system after every 64 MiB, so that no key sees enough output to
matter, and whenever it notices that it is not in the process or thread it was made for, so that a forked child never
repeats its parent's noise. A source can be neither copied nor pickled: two holders of one stream would draw the same
noise.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hubbub.errors import EntropyError

Words = np.ndarray[Any, np.dtype[np.uint64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

KEY_BYTES = 32
BUFFER_BYTES = 1 << 14
REKEY_BYTES = 1 << 26
_ZEROS = bytes(1 << 20)


class Source(Protocol):
    """Uniform random bits. Every sampler draws from one of these and from nothing else."""

    def begin(self, kind: str, public: Mapping[str, object]) -> None:
        """Announce the kind of draw at its start; production ignores it, ``hubbub.testing.replay`` records it."""
        ...

    def fill(self, out: memoryview) -> None:
        """Overwrite every byte of ``out`` with fresh uniform bytes."""
        ...

    def word(self) -> int:
        """A fresh uniform integer in [0, 2^64)."""
        ...


class _Keystream:
    """One thread's stream in one process."""

    __slots__ = ("_at", "_buffer", "_encryptor", "_left", "generation")

    def __init__(self, generation: tuple[int, int]) -> None:
        self.generation = generation
        self._buffer = b""
        self._at = 0
        self._rekey()

    def _rekey(self) -> None:
        self._encryptor = Cipher(algorithms.AES256(_system_entropy(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
        self._left = REKEY_BYTES

    def fill(self, out: memoryview) -> None:
        done = 0
        while done < len(out):
            if self._left <= 0:
                self._rekey()
            step = min(len(out) - done, len(_ZEROS), self._left)
            self._encryptor.update_into(_ZEROS[:step] if step < len(_ZEROS) else _ZEROS, out[done : done + step])
            self._left -= step
            done += step

    def word(self) -> int:
        at = self._at
        if at == len(self._buffer):
            fresh = bytearray(BUFFER_BYTES)
            self.fill(memoryview(fresh))
            self._buffer, at = bytes(fresh), 0
        self._at = at + 8
        return int.from_bytes(self._buffer[at : at + 8], "little")

    def __reduce__(self) -> NoReturn:
        raise EntropyError("A stream of noise cannot be copied or pickled: two copies would draw the same noise.")


class SystemSource:
    """The production source. Any number of threads and processes may share the object; none shares a stream."""

    def __init__(self) -> None:
        self._local = threading.local()

    def _stream(self) -> _Keystream:
        now = generation()
        stream: _Keystream | None = getattr(self._local, "stream", None)
        if stream is None or stream.generation != now:
            stream = self._local.stream = _Keystream(now)
        return stream

    def begin(self, kind: str, public: Mapping[str, object]) -> None:
        pass

    def fill(self, out: memoryview) -> None:
        self._stream().fill(out)

    def word(self) -> int:
        return self._stream().word()

    def __reduce__(self) -> NoReturn:
        raise EntropyError("A source of noise cannot be copied or pickled: two copies would draw the same noise.")


def generation() -> tuple[int, int]:
    """Return a value that changes in a forked child: forks since the first process, and the process."""
    return _forks, os.getpid()


def words(source: Source, size: int) -> Words:
    """``size`` fresh uniform 64-bit words."""
    out = np.empty(size, dtype=np.uint64)
    source.fill(out.view(np.uint8).data)
    return out


def digits(source: Source, size: int, count: int) -> Integers:
    """``size`` fresh uniform integers of ``count`` bits, at most 63, from no more bytes than those need."""
    dtype = np.dtype(np.min_scalar_type((1 << count) - 1))
    out = np.empty(size, dtype=dtype)
    source.fill(out.view(np.uint8).data)
    if count < 8 * dtype.itemsize:
        out >>= 8 * dtype.itemsize - count
    return out.astype(np.int64)


def bits(source: Source, count: int) -> int:
    """A fresh uniform integer in [0, 2^count)."""
    if count <= 64:
        return source.word() >> (64 - count)
    whole, rest = divmod(count, 64)
    value = 0
    for _ in range(whole):
        value = value << 64 | source.word()
    return value << rest | bits(source, rest) if rest else value


def begin(kind: str, **public: object) -> Source:
    """Start one draw: the single primitive that all noise goes through, so that tests can record and replay it.

    ``public`` describes the draw by what does not depend on the data. The source is the system's, except inside a
    test's ``substitute``.
    """
    source = _source.get()
    source.begin(kind, public)
    return source


def is_substituted() -> bool:
    """Return True while a test's source is drawn from. Repeating draws is allowed only then."""
    return not isinstance(_source.get(), SystemSource)


@contextmanager
def substitute(source: Source) -> Iterator[None]:
    """Draw from another source, for tests only: with a predictable source there is no privacy at all.

    ``hubbub.testing`` is the only caller. Nothing that an analyst or a policy can write leads here: no mechanism, query
    or release takes a source, a seed or a generator.
    """
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def _system_entropy(count: int) -> bytes:
    try:
        raw = os.urandom(count)
    except (OSError, NotImplementedError) as error:
        raise EntropyError("The operating system gave no randomness; no noise can be drawn without it.") from error
    if len(raw) != count or not any(raw):
        raise EntropyError("The operating system's randomness is broken (short or all zeros); refusing to draw noise.")
    return raw


def _after_fork() -> None:
    global _forks  # noqa: PLW0603 - the child must see it before any other code runs
    _forks += 1


_forks = 0
os.register_at_fork(after_in_child=_after_fork)
_source: ContextVar[Source] = ContextVar("hubbub_noise_source", default=SystemSource())  # noqa: B039 - never mutated through it
