"""Programs for the sandbox: some honest, some not. They run in processes of their own, on rows that they are given."""

import ctypes
import os
import platform
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

SEEN: list[int] = []


def mean(rows: dict[str, Any]) -> float:
    return float(np.mean(rows["x"]))


def ends(rows: dict[str, Any]) -> list[float]:
    return [float(rows["x"].min()), float(rows["x"].max())]


def shapes(rows: dict[str, Any]) -> list[float]:
    """What the columns look like: 1 where as promised."""
    return [
        float(rows["n"].dtype == np.int64),
        float(np.isnan(rows["x"][0]) and rows["x"].dtype == np.float64),
        float(rows["t"].tolist() == ["a", None]),
        float(np.isnat(rows["d"][1]) and str(rows["d"][0]) == "2024-02-29"),
    ]


def threads(rows: dict[str, Any]) -> float:
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(7.0))
    thread.start()
    thread.join()
    return found[0]


def remembers(rows: dict[str, Any]) -> float:
    """How often it was called before with real rows: the rehearsal counts, other blocks do not."""
    SEEN.append(len(rows["x"]))
    return float(sum(size == 3 for size in SEEN))


def _real(rows: dict[str, Any]) -> bool:
    return len(rows["x"]) == 3


def forks(rows: dict[str, Any]) -> float:
    if _real(rows):
        os.fork()
    return 1.0


def forks_early(rows: dict[str, Any]) -> float:
    os.fork()
    return 1.0


def runs(rows: dict[str, Any]) -> float:
    return float(subprocess.run(["/bin/true"], check=False).returncode + 1)


def writes(rows: dict[str, Any]) -> float:
    Path("/tmp/hubbub-sandbox-leak").write_text("x", encoding="utf-8")
    return 1.0


def reads(rows: dict[str, Any]) -> float:
    return float(len(Path("/etc/passwd").read_text(encoding="utf-8")))


def looks(rows: dict[str, Any]) -> float:
    return float(os.stat("/etc/passwd").st_size) if _real(rows) else 1.0


def connects(rows: dict[str, Any]) -> float:
    socket.socket().connect(("127.0.0.1", 9))
    return 1.0


def opens_socket(rows: dict[str, Any]) -> float:
    socket.socket().close()
    return 1.0


def sleeps(rows: dict[str, Any]) -> float:
    if _real(rows):
        time.sleep(600)
    return 1.0


def crashes(rows: dict[str, Any]) -> float:
    if _real(rows):
        ctypes.string_at(0)
    return 1.0


def raises(rows: dict[str, Any]) -> float:
    raise ValueError(str(rows))


def exits(rows: dict[str, Any]) -> float:
    os._exit(0)


def kills_parent(rows: dict[str, Any]) -> float:
    os.kill(os.getppid(), 9)
    return 1.0


def takes_memory(rows: dict[str, Any]) -> float:
    return float(len(bytearray(64 << 30)))


def shares_memory(rows: dict[str, Any]) -> float:
    from multiprocessing import shared_memory

    shared_memory.SharedMemory(name="hubbub", create=True, size=100)
    return 1.0


def changes_times(rows: dict[str, Any]) -> float:
    os.utime(os.__file__)
    return 1.0


def says_too_much(rows: dict[str, Any]) -> list[float]:
    return [1.0, 2.0]


def says_nothing(rows: dict[str, Any]) -> None:
    return None


def says_text(rows: dict[str, Any]) -> str:
    return "three"


def infinite(rows: dict[str, Any]) -> float:
    return float("inf")


def keeps_doors_open(rows: dict[str, Any]) -> float:
    """Talk the code beside it out of every lock, while it still can."""
    for name, module in list(sys.modules.items()):
        for lock in ("only_calls", "allow_only", "install", "assemble"):
            if hasattr(module, lock) and (name == "__main__" or name.startswith("sandboxed")):
                setattr(module, lock, lambda *_, **__: None)
    return float(os.stat("/usr/lib").st_mode) if _real(rows) else 1.0


def pretends(rows: dict[str, Any]) -> float:
    """Set a filter under which later ones, and closed files, only seem to succeed."""
    load, equal, give, allow, nothing = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
    numbers = (317 if platform.machine() == "x86_64" else 277, 436)
    steps = [(load, 0, 0, 0), (equal, 2, 0, numbers[0]), (equal, 1, 0, numbers[1])]
    steps += [(give, 0, 0, allow), (give, 0, 0, nothing)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None)
    libc.syscall(numbers[0], 1, 0, struct.pack("@HP", len(steps), ctypes.addressof(text)))
    return 1.0


def never_ends(rows: dict[str, Any]) -> float:
    while True:
        pass


def prints(rows: dict[str, Any]) -> float:
    print("a program may print")
    return 4.0


def letters(rows: dict[str, Any]) -> float:
    """How many signs there are in a text."""
    return float(sum(len(text) for text in rows["t"]))
