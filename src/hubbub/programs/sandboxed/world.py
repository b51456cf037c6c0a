"""A world for one block: namespaces, a root of mounts that cannot be written, no capabilities, limits of its own.

Nothing in it is shared with another block but files of the installation, which no block can change: a read-only mount
keeps even the time of the last reading. There is no /proc, and /sys says that there is one processor.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
from collections.abc import Sequence

from . import calls
from .system import LIBC, Missing, call, check

_SPACES = {
    "a user namespace": 0x10000000,
    "a process namespace": 0x20000000,
    "a network namespace": 0x40000000,
    "a namespace for shared memory and queues": 0x08000000,
    "a host name of its own": 0x04000000,
    "a control group namespace": 0x02000000,
}
"""CLONE_NEW… of linux/sched.h. None for time: no clock runs inside (``clocks``)."""
_MOUNTS = 0x00020000
_NOBODY = 65534
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38
_PRIVATE = 0x40000 | 0x4000
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4
_HERE, _EMPTY_PATH, _RECURSIVE = -100, 0x1000, 0x8000
_DEVICES = ("/dev/null", "/dev/urandom")
_PROCESSORS = "/sys/devices/system/cpu"
_READ, _EXECUTE, _READ_DIRECTORY = 1 << 2, 1 << 0, 1 << 3
_MOST_FILES = 256


def leave(parent: int) -> None:
    """Enter namespaces that nobody else is in; the next fork is process 1 of them. Dies with its parent."""
    _check_unwatched()
    user, group = os.geteuid(), os.getegid()
    for what, space in _SPACES.items():
        check(LIBC.unshare(space), what)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{_NOBODY} {user} 1"), ("gid_map", f"{_NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def _check_unwatched() -> None:
    """Refuse a C library that has the kernel write into this process whenever it is interrupted (rseq)."""
    try:
        size = ctypes.c_uint.in_dll(LIBC, "__rseq_size").value
    except ValueError:
        return  # the library knows no such thing
    if size:
        raise Missing("a process that does not see when it is interrupted", "glibc.pthread.rseq=0 has no effect")


def die_with_parent() -> None:
    """End when the parent ends."""
    check(LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "an end with its parent")


def enter(readable: Sequence[str], *, memory: int) -> None:
    """See these places and no others, read-only; keep no right and no file but the first three."""
    _move_to_root(readable)
    _drop_capabilities()
    allow_only(readable)
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MOST_FILES),
    ):
        resource.setrlimit(kind, (most, most))
    call("files of its own", calls.NUMBERS[platform.machine()]["close_range"], 3, calls.LAST_FILE, 0)


def _move_to_root(readable: Sequence[str]) -> None:
    """Build a root of the readable places and make it the only one."""
    what = "a root of its own (mounts)"
    check(LIBC.unshare(_MOUNTS), "a mount namespace")
    check(LIBC.mount(None, b"/", None, _PRIVATE, None), what)
    trees = {place: _copy_mount(place) for place in _outermost([*readable, *_DEVICES])}
    root = "/proc"  # any folder that is there: what it hides is not needed
    check(LIBC.mount(b"block", root.encode(), b"tmpfs", _NO_SETUID | _NO_DEVICES, b"mode=755"), what)
    for place, tree in trees.items():
        target = root + place
        if os.path.isdir(place):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        call(what, calls.MOVE_MOUNT, tree, b"", _HERE, target.encode(), 4)
        os.close(tree)
    os.makedirs(root + _PROCESSORS)
    for name in ("online", "possible", "present"):
        with open(f"{root}{_PROCESSORS}/{name}", "w", encoding="ascii") as file:
            file.write("0\n")
    os.chdir(root)
    call(what, calls.NUMBERS[platform.machine()]["pivot_root"], b".", b".")
    check(LIBC.umount2(b".", 2), what)
    os.chdir("/")
    _set_attributes(_HERE, b"/", 0, _READ_ONLY | _NO_SETUID | _NO_DEVICES)


def _outermost(places: Sequence[str]) -> list[str]:
    """The places that exist, without those that lie in another."""
    kept: list[str] = []
    for place in sorted({os.path.normpath(place) for place in places if os.path.exists(place)}):
        if not any(place.startswith(outer + "/") for outer in kept):
            kept.append(place)
    return kept


def _copy_mount(place: str) -> int:
    """A mount of a place that cannot be written, not attached yet."""
    tree = call("a mount that cannot be written", calls.OPEN_TREE, _HERE, place.encode(), 1 | os.O_CLOEXEC | _RECURSIVE)
    devices = 0 if place in _DEVICES else _NO_DEVICES
    _set_attributes(tree, b"", _EMPTY_PATH | _RECURSIVE, _READ_ONLY | _NO_SETUID | devices)
    return tree


def _set_attributes(folder: int, path: bytes, how: int, attributes: int) -> None:
    wanted = ctypes.create_string_buffer(struct.pack("=QQQQ", attributes, 0, 0, 0), 32)
    call("a mount that cannot be written", calls.MOUNT_SETATTR, folder, path, how, wanted, 32)


def _drop_capabilities() -> None:
    """Give up every right over the namespaces, for good."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0), 8)
    none = ctypes.create_string_buffer(24)
    call("a process without rights", calls.NUMBERS[platform.machine()]["capset"], header, none)
    check(LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "a process without rights")


def allow_only(readable: Sequence[str]) -> None:
    """Files under these places may be read, and no others; nothing may be written, made or removed anywhere."""
    what = "a lock on files (Landlock)"
    version = call(what, calls.LANDLOCK_CREATE, None, 0, 1)
    every = (1 << (16 if version >= 5 else 15 if version >= 3 else 14 if version >= 2 else 13)) - 1
    network, scoped = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = call(what, calls.LANDLOCK_CREATE, struct.pack("=QQQ", every, network, scoped), size, 0)
    for place in (*readable, *_DEVICES, _PROCESSORS):
        if os.path.exists(place):
            handle = os.open(place, os.O_PATH)
            access = _READ | _EXECUTE | (_READ_DIRECTORY if os.path.isdir(place) else 0)
            call(what, calls.LANDLOCK_ADD, rules, 1, struct.pack("=Qi", access, handle), 0)
            os.close(handle)
    call(what, calls.LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)
