"""No stream is ever seen twice, no key is used too long, and nothing is drawn when the system has no entropy."""

import copy
import inspect
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import hubbub.gate.meter
import hubbub.mechanisms
import hubbub.noise
from hubbub import noise
from hubbub.errors import EntropyError
from hubbub.noise import entropy
from hubbub.noise.entropy import SystemSource, substitute, words
from tests.noise.sources import Script, Untouchable

KEY = bytes(range(32))


def keystream(key: bytes, count: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def take(source: SystemSource, count: int) -> bytes:
    out = bytearray(count)
    source.fill(memoryview(out))
    return bytes(out)


class Keys:
    """Stands for os.urandom: gives known keys and counts how many were taken."""

    def __init__(self) -> None:
        self.given: list[bytes] = []

    def __call__(self, count: int) -> bytes:
        assert count == 32
        self.given.append(bytes([len(self.given) + 1]) * count)
        return self.given[-1]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Keys:
    given = Keys()
    monkeypatch.setattr(os, "urandom", given)
    return given


class TestKeystream:
    def test_it_is_aes_256_ctr_of_the_system_s_key(self, keys: Keys) -> None:
        source = SystemSource()
        drawn = take(source, 1000) + take(source, (1 << 20) + 7)
        assert drawn == keystream(keys.given[0], len(drawn))
        assert len(keys.given) == 1

    def test_words_are_its_little_endian_words(self, keys: Keys) -> None:
        source = SystemSource()
        count = 3 * entropy.BUFFER_BYTES // 8
        drawn = [source.word() for _ in range(count)]
        assert drawn == np.frombuffer(keystream(keys.given[0], 8 * count), dtype="<u8").tolist()

    def test_a_known_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """FIPS 197, appendix C.3, has this key; the counter starts at zero."""
        monkeypatch.setattr(os, "urandom", lambda count: KEY)
        assert take(SystemSource(), 16).hex() == "f29000b62a499fd0a9f39a6add2e7780"

    def test_fills_and_words_never_share_bytes(self, keys: Keys) -> None:
        source = SystemSource()
        first = source.word().to_bytes(8, "little")
        filled = take(source, 64)
        stream = keystream(keys.given[0], entropy.BUFFER_BYTES + 64)
        assert first == stream[:8]
        assert filled == stream[entropy.BUFFER_BYTES :]

    def test_a_key_gives_its_last_byte_and_no_more(self, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(entropy, "REKEY_BYTES", 64)
        source = SystemSource()
        drawn = take(source, 63) + take(source, 1)
        assert len(keys.given) == 1
        assert drawn == keystream(keys.given[0], 64)
        assert take(source, 1) == keystream(keys.given[1], 1)

    @pytest.mark.parametrize("volume", [64, 100, 1000])
    def test_a_new_key_after_the_volume(self, keys: Keys, monkeypatch: pytest.MonkeyPatch, volume: int) -> None:
        monkeypatch.setattr(entropy, "REKEY_BYTES", volume)
        source = SystemSource()
        drawn = take(source, volume)
        assert len(keys.given) == 1
        drawn += take(source, 2 * volume + 10)
        assert len(keys.given) == 4
        assert drawn == b"".join(keystream(key, volume) for key in keys.given)[: len(drawn)]

    def test_the_volume_is_sixty_four_mebibytes(self) -> None:
        assert entropy.REKEY_BYTES == 64 << 20
        assert entropy.KEY_BYTES == 32

    def test_empty_fills_are_free(self, keys: Keys) -> None:
        assert take(SystemSource(), 0) == b""
        assert words(SystemSource(), 0).shape == (0,)


class TestFailsClosed:
    @pytest.mark.parametrize("error", [OSError("no device"), NotImplementedError("no urandom")])
    def test_no_entropy(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        def fail(count: int) -> bytes:
            raise error

        self.expect_refusal(monkeypatch, fail)

    @pytest.mark.parametrize("raw", [b"", b"\x01" * 31, b"\x01" * 33, bytes(32)])
    def test_short_long_or_all_zero(self, monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
        self.expect_refusal(monkeypatch, lambda count: raw)

    def expect_refusal(self, monkeypatch: pytest.MonkeyPatch, urandom: Callable[[int], bytes]) -> None:
        monkeypatch.setattr(os, "urandom", urandom)
        source = SystemSource()
        with substitute(source):
            for draw in (
                lambda: noise.discrete_laplace(scale=1),
                lambda: noise.discrete_gaussian(sigma=1, size=5),
                lambda: noise.bernoulli(0.5),
                lambda: noise.uniform_below(10),
            ):
                with pytest.raises(EntropyError) as caught:
                    draw()
                assert str(caught.value).startswith("[no-entropy] ")

    def test_one_odd_byte_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "urandom", lambda count: bytes(31) + b"\x01")
        assert len(take(SystemSource(), 8)) == 8

    def test_a_failed_new_key_gives_no_bytes_of_the_old_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(entropy, "REKEY_BYTES", 64)
        monkeypatch.setattr(os, "urandom", lambda count: KEY)
        source = SystemSource()
        take(source, 64)
        monkeypatch.setattr(os, "urandom", lambda count: b"")
        for _ in range(2):
            with pytest.raises(EntropyError):
                take(source, 1)


def in_child(work: Callable[[], bytes]) -> bytes:
    """What a forked child draws."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    return drawn


def _pool_draw(_: int) -> tuple[int, ...]:
    return tuple(noise.uniform_below(1 << 62, size=4).tolist())


class TestStreamsAreNeverShared:
    @pytest.mark.parametrize("used", [False, True])
    def test_forked_children(self, used: bool) -> None:
        source = SystemSource()

        def work() -> bytes:
            return take(source, 32) + source.word().to_bytes(8, "little")

        if used:
            work()
        streams = [in_child(work), in_child(work), work(), in_child(lambda: in_child(work) + work())]
        streams += [streams[3][:40], streams[3][40:]]
        del streams[3]
        assert all(len(stream) == 40 for stream in streams)
        assert len(set(streams)) == len({stream[:32] for stream in streams}) == 5

    def test_forked_children_do_not_reuse_buffered_words(self) -> None:
        source = SystemSource()
        source.word()
        child = in_child(lambda: b"".join(source.word().to_bytes(8, "little") for _ in range(8)))
        parent = b"".join(source.word().to_bytes(8, "little") for _ in range(8))
        assert child != parent

    def test_a_reused_process_number_does_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A grandchild may get the number of a dead ancestor: the count of forks still tells."""
        source = SystemSource()
        source.word()
        number = os.getpid()

        def work() -> bytes:
            os.getpid = lambda: number
            return take(source, 32)

        assert in_child(work) != take(source, 32)

    def test_the_process_number_alone_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = SystemSource()
        source.word()
        before = source._stream()
        assert source._stream() is before
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert source._stream() is not before

    def test_pools_of_processes(self) -> None:
        noise.uniform_below(10)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            drawn = pool.map(_pool_draw, range(8), chunksize=1)
        assert len(set(drawn)) == 8

    def test_threads(self) -> None:
        source = SystemSource()
        mine = source._stream()
        found: list[tuple[bytes, object]] = []
        threads = [
            threading.Thread(target=lambda: found.append((take(source, 32), source._stream()))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({drawn for drawn, _ in found} | {take(source, 32)}) == 9
        assert len({id(stream) for _, stream in found} | {id(mine)}) == 9

    @pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_sources_and_streams_cannot_be_copied(self, copier: Callable[[Any], Any]) -> None:
        source = SystemSource()
        source.word()
        for held in (source, source._stream()):
            with pytest.raises(EntropyError, match="copied"):
                copier(held)


class TestSubstitution:
    def test_only_inside_and_restored_after_an_error(self) -> None:
        before = entropy._source.get()
        with pytest.raises(AssertionError, match="run out"), substitute(Script([7])):
            noise.discrete_laplace(scale=1000)
        assert entropy._source.get() is before
        assert isinstance(before, SystemSource)

    def test_other_threads_still_draw_from_the_system(self) -> None:
        seen: list[object] = []
        with substitute(Untouchable()):
            thread = threading.Thread(target=lambda: seen.append(noise.uniform_below(1 << 40)))
            thread.start()
            thread.join()
        assert len(seen) == 1

    def test_begin_tells_the_source_what_is_drawn(self) -> None:
        told: list[tuple[str, Mapping[str, object]]] = []

        class Recorder(Script):
            def begin(self, kind: str, public: Mapping[str, object]) -> None:
                told.append((kind, public))

        with substitute(Recorder()):
            entropy.begin("kind", size=3)
        assert told == [("kind", {"size": 3})]

    @pytest.mark.parametrize("module", [hubbub.noise, hubbub.mechanisms, hubbub.gate.meter])
    def test_no_public_signature_takes_a_source_or_a_seed(self, module: Any) -> None:
        forbidden = {"seed", "source", "rng", "random_state", "generator", "random", "entropy"}
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        checked = 0
        for name in names:
            thing = getattr(module, name)
            if not callable(thing) or not str(getattr(thing, "__module__", "")).startswith("hubbub"):
                continue
            members = [thing, *(m for k, m in inspect.getmembers(thing, callable) if not k.startswith("_"))]
            for member in members if inspect.isclass(thing) else [thing]:
                try:
                    parameters = inspect.signature(member).parameters
                except (TypeError, ValueError):
                    continue
                checked += 1
                assert not forbidden & set(parameters), f"{name}.{member}"
                assert not any("Source" in str(parameter.annotation) for parameter in parameters.values())
        assert checked > 2


class TestBits:
    def test_the_top_bits_of_words_are_taken(self) -> None:
        assert entropy.bits(Script([0xF000_0000_0000_0001]), 4) == 0xF
        assert entropy.bits(Script([0xF000_0000_0000_0001]), 64) == 0xF000_0000_0000_0001
        assert entropy.bits(Script([1, 2]), 128) == 1 << 64 | 2
        assert entropy.bits(Script([1, 2, 3 << 62]), 130) == (1 << 64 | 2) << 2 | 3

    def test_words_fill_whole_arrays(self) -> None:
        source = Script([1, 2, 1 << 63])
        assert words(source, 3).tolist() == [1, 2, 1 << 63]
