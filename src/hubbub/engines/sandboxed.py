"""The process of one block: it loads a program, shuts every door, gets the block's rows and says what the program says.

It is started as a script and imports nothing of ours. While the program is loaded it may read the Python installation
and nothing else, start threads but no processes, and has no network. Before any row comes, a second filter of system
calls closes all files, too: what is left is computing, threads, and the one channel to the outside.
"""

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import types
from typing import Any

_LENGTH = struct.Struct(">Q")
_NEW_NETWORK, _NEW_IPC, _NEW_MOUNT, _NEW_USER = 0x40000000, 0x08000000, 0x00020000, 0x10000000
_READ, _EXECUTE, _READ_DIRECTORY = 1 << 2, 1 << 0, 1 << 3
_THREAD = 0x00010000

_MACHINES = {
    "x86_64": (0xC000003E, 317),
    "aarch64": (0xC00000B7, 277),
}
_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20, "select": 23,
        "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "pause": 34, "nanosleep": 35, "getpid": 39,
        "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "exit": 60, "fcntl": 72, "gettimeofday": 96,
        "getrusage": 98, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "sigaltstack": 131,
        "arch_prctl": 158, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "set_tid_address": 218,
        "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
        "ppoll": 271, "pselect6": 270, "set_robust_list": 273, "getcpu": 309, "getrandom": 318, "membarrier": 324,
        "rseq": 334,
    },
    "aarch64": {
        "dup": 23, "fcntl": 25, "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66,
        "pselect6": 72, "ppoll": 73, "exit": 93, "exit_group": 94, "set_tid_address": 96, "futex": 98,
        "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "getrusage": 165, "getcpu": 168, "gettimeofday": 169,
        "getpid": 172, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sendto": 206,
        "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278, "membarrier": 283, "rseq": 293,
    },
}  # fmt: skip
"""What a program may ask of the system once it has rows: memory, threads, time, chance, and the open channel."""
_LOADING: dict[str, tuple[int, ...]] = {
    "x86_64": (
        2, 4, 5, 6, 16, 17, 21, 22, 33, 38, 63, 79, 89, 95, 97, 99, 110, 137, 138, 140, 143, 145, 149, 150, 157, 160,
        203, 217, 221, 232, 233, 239, 257, 262, 267, 269, 290, 291, 292, 293, 302, 317, 332, 439, 444, 445, 446,
    ),
    "aarch64": (
        17, 19, 20, 21, 22, 24, 29, 43, 44, 48, 56, 59, 61, 67, 78, 79, 80, 103, 122, 160, 163, 164, 166, 167, 173,
        179, 223, 228, 229, 261, 277, 291, 439, 444, 445, 446,
    ),
}  # fmt: skip
"""And what it may ask before, while it loads: open, stat, readlink and the like, which the first lock holds to the
installation; pipes and events of its own; and the calls that make the second lock. Not: processes, sockets, changes."""
_EXECUTE_CALL = {"x86_64": 59, "aarch64": 221}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435


def send(channel: socket.socket, message: Any) -> None:
    """One message, whole."""
    body = json.dumps(message).encode()
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket) -> Any:
    """One message, whole."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return json.loads(_exactly(channel, length))


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# Locks


def _checked(code: int, what: str) -> int:
    if code < 0:
        raise OSError(ctypes.get_errno(), what)
    return code


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def separate(parent: int) -> None:
    """Dies with its parent; no network, no shared memory, no mounts of others."""
    libc = _libc()
    _checked(libc.prctl(1, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(1)
    spaces = _NEW_NETWORK | _NEW_IPC | _NEW_MOUNT
    if libc.unshare(spaces) != 0:
        _checked(libc.unshare(_NEW_USER | spaces), "unshare")
    _checked(libc.prctl(38, 1, 0, 0, 0), "no new privileges")


def allow_only(readable: list[str]) -> None:
    """Files under these places may be read, and no others; nothing may be written, made or removed anywhere."""
    libc = _libc()
    version = _checked(libc.syscall(444, None, 0, 1), "landlock")
    every = (1 << (16 if version >= 5 else 15 if version >= 3 else 14 if version >= 2 else 13)) - 1
    network, scoped = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _checked(libc.syscall(444, struct.pack("=QQQ", every, network, scoped), size, 0), "landlock rules")
    for place in readable:
        try:
            handle = os.open(place, os.O_PATH)
        except OSError:
            continue
        access = _READ | _EXECUTE | (_READ_DIRECTORY if os.path.isdir(place) else 0)
        _checked(libc.syscall(445, rules, 1, struct.pack("=Qi", access, handle), 0), "landlock rule")
        os.close(handle)
    _checked(libc.syscall(446, rules, 0), "landlock lock")
    os.close(rules)


def only_calls(*, loading: bool, executing: bool = False) -> None:
    """From now on every other system call fails, in every thread; threads may be started, processes may not."""
    name = platform.machine()
    machine, call = _MACHINES[name]
    more = (*(_LOADING[name] if loading else ()), *((_EXECUTE_CALL[name],) if executing else ()))
    allowed = sorted({*_CALLS[name].values(), *more})
    load, equal, any_bit, at_least, give = 0x20, 0x15, 0x45, 0x35, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    many = len(allowed)
    program = [
        (load, 0, 0, 4),
        (equal, 0, many + 6, machine),  # another architecture's calls are refused
        (load, 0, 0, 0),
        (at_least, many + 4, 0, 0x40000000),
        *((equal, many - at + 4, 0, number) for at, number in enumerate(allowed)),
        (equal, 5, 0, _CLONE3),
        (equal, 0, 2, _CLONE[name]),
        (load, 0, 0, 16),
        (any_bit, 1, 0, _THREAD),
        (give, 0, 0, refuse),
        (give, 0, 0, allow),
        (give, 0, 0, unknown),
    ]
    text = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(text, len(text))
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    _checked(_libc().syscall(call, 1, 1, filters), "seccomp")


def limit(memory: int, seconds: float) -> None:
    """Memory and processor time of its own; no files, no core."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = 2 * int(seconds) * (os.cpu_count() or 1) + 60
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


# The program


def loaded(program: dict[str, str]) -> Any:
    """The function, from its file or its text."""
    module = types.ModuleType("hubbub_program")
    sys.modules[module.__name__] = module
    text, place = program["text"], program.get("file", "<program>")
    module.__file__ = place
    exec(compile(text, place, "exec"), module.__dict__)
    found: Any = module
    for part in program["name"].split("."):
        found = getattr(found, part)
    return found


def rehearse(function: Any, rows: dict[str, Any], seconds: float) -> None:
    """Whatever the program loads late is loaded now; what it says does not matter."""

    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds + 5)
    with contextlib.suppress(BaseException):
        function(columns_of(rows))
    signal.setitimer(signal.ITIMER_REAL, 0)


def columns_of(rows: dict[str, Any]) -> dict[str, Any]:
    """Columns as arrays: whole numbers and reals (missing ones are NaN), dates, and the rest as objects."""
    import numpy as np

    made: dict[str, Any] = {}
    for name, (kind, values) in rows.items():
        if kind == "integer" and None not in values:
            made[name] = np.asarray(values, dtype=np.int64)
        elif kind in {"integer", "real"}:
            made[name] = np.asarray([np.nan if one is None else one for one in values], dtype=np.float64)
        elif kind in {"date", "timestamp"}:
            unit = "D" if kind == "date" else "us"
            made[name] = np.asarray(["NaT" if one is None else one for one in values], dtype=f"datetime64[{unit}]")
        else:
            made[name] = np.asarray(values, dtype=object)
    return made


def said(function: Any, rows: dict[str, Any], width: int) -> list[float] | None:
    """The program's numbers; None for anything that is no such list."""
    try:
        found = function(columns_of(rows))
        numbers = [float(one) for one in (found if width > 1 or hasattr(found, "__len__") else [found])]
        return numbers if len(numbers) == width else None
    except BaseException:
        return None


def table_of(rows: dict[str, Any]) -> bytes:
    """CSV with a header; missing values are empty."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows)
    writer.writerows(zip(*(values for _, values in rows.values()), strict=True))
    return written.getvalue().encode("utf-8", "replace")


def execute(channel: socket.socket, order: dict[str, Any]) -> None:
    """A command instead of a function: the rows are its input, and whatever it prints goes into the channel.

    It reads its own files after it has rows, the installation's and no others, so they are the same for every block.
    """
    held = os.memfd_create("rows", 0)
    only_calls(loading=True, executing=True)
    send(channel, {"ready": True})
    text = memoryview(table_of(receive(channel)))
    while text:
        text = text[os.write(held, text) :]
    os.lseek(held, 0, os.SEEK_SET)
    os.dup2(held, 0)
    os.dup2(channel.fileno(), 1)
    limit(order["memory"], order["seconds"])
    os.execve(order["command"][0], order["command"], {"LC_ALL": "C.UTF-8"})


def main() -> None:
    """One block, from the first word to the last."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    order = receive(channel)
    try:
        separate(int(sys.argv[2]))
        allow_only(order["readable"])
        if order["command"]:
            execute(channel, order)
        only_calls(loading=True)
        limit(order["memory"], order["seconds"])
        function = loaded(order["program"])
        rehearse(function, order["rehearsal"], order["seconds"])
        allow_only([])
        only_calls(loading=False)
    except BaseException as problem:
        send(channel, {"problem": f"{type(problem).__name__}: {problem}"})
        os._exit(1)
    send(channel, {"ready": True})
    rows = receive(channel)
    send(channel, {"output": said(function, rows, order["width"])})
    while True:
        signal.pause()  # the end of the slot is the end of the process, however long it took


if __name__ == "__main__":
    main()
