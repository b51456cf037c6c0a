"""Programs that try to see anything outside their own block: locks, signals, counters, limits, memory, clocks.

Each attempt is a function that says whether it got through; one that would last, or reach other people's processes, is
made in a way that the kernel accepts and that changes nothing. They are tried while the program is loaded, and again
when it has rows; a command tries them with rows. Outside of a sandbox they work, which shows that they could.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import resource
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

LIBC: Any = ctypes.CDLL(None, use_errno=True)
COMMON = os.__file__
"""A file that every block can read while it is loaded."""
OTHER = os.getppid() or 2
"""A process that is not this one."""
INHERITED = [file for file in range(3, 256) if LIBC.fcntl(file, fcntl.F_GETFD) != -1]
FILE = os.open(COMMON, os.O_RDONLY)
FOLDER = os.open(os.path.dirname(COMMON), os.O_RDONLY)
NOBODY = 1 << 21
"""A number that no process has."""
BUFFER = ctypes.create_string_buffer(1 << 16)
X86 = platform.machine() == "x86_64"
NUMBERS = {
    "gettid": (186, 178), "futex": (202, 98), "clock_gettime": (228, 113), "gettimeofday": (96, 169),
    "getcpu": (309, 168), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "rseq": (334, 293),
    "seccomp": (317, 277), "statx": (332, 291), "tgkill": (234, 131), "ioprio_get": (252, 31),
    "fanotify_init": (300, 262), "times": (100, 153), "sched_setattr": (314, 274), "kcmp": (312, 272),
}  # fmt: skip
EARLY: list[float] = []
WORD = ctypes.cast(LIBC.puts, ctypes.c_void_p).value or 0
"""An address in the C library's own pages, which all processes have in common."""


def call(name: str, *arguments: Any) -> bool:
    """Whether a system call gets through."""
    number = NUMBERS[name][0 if X86 else 1]
    return did(LIBC.syscall(ctypes.c_long(number), *[_wide(value) for value in arguments]))


def _wide(value: Any) -> Any:
    return ctypes.c_long(value) if isinstance(value, int) else value


def lock(command: int, kind: int) -> bool:
    """Whether a record lock can be set or asked about."""
    wanted = struct.pack("hhqqi4x", kind, 0, 0, 1, 0)
    return len(fcntl.fcntl(FILE, command, wanted)) == len(wanted)


def moves(read: Callable[[], float]) -> bool:
    """Whether a clock goes on while the program computes."""
    first = read()
    sum(range(200_000))
    return read() != first


def starts_thread() -> bool:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return True


def forks() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def maps(kind: int, file: int = -1) -> bool:
    with mmap.mmap(file, 1 << 12, flags=kind, prot=mmap.PROT_READ):
        return True


def advises(advice: int) -> bool:
    pages = mmap.mmap(-1, 1 << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    return did(LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(1 << 12), advice))


def counter() -> float:
    """The processor's counter, by an instruction."""
    code = "0f31 48c1e220 4809d0 c3" if X86 else "40e03bd5 c0035fd6"
    pages = mmap.mmap(-1, 1 << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    pages.write(bytes.fromhex(code))
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(pages)))
    return float(function())


def channel_time() -> bool:
    """Whether the channel to the outside shows when it was used."""
    return any(os.fstat(file).st_mtime for file in (0, 1) if not stat.S_ISCHR(os.fstat(file).st_mode))


def touches() -> bool:
    """Whether the times of a common file can be set, here to what they are."""
    times = os.stat(COMMON)
    os.utime(COMMON, ns=(times.st_atime_ns, times.st_mtime_ns))
    return True


def runs(function: Callable[..., Any], *arguments: Any) -> bool:
    function(*arguments)
    return True


def did(result: int) -> bool:
    """Whether the kernel has looked at a call, if only to find that there is no such thing."""
    return result != -1 or ctypes.get_errno() not in {errno.EPERM, errno.EACCES, errno.ENOSYS}


ATTEMPTS: dict[str, Callable[[], bool]] = {
    # Files that blocks have in common
    "record lock set": lambda: lock(fcntl.F_SETLK, fcntl.F_RDLCK),
    "record lock seen": lambda: lock(fcntl.F_GETLK, fcntl.F_WRLCK),
    "open file lock set": lambda: lock(37, fcntl.F_RDLCK),
    "open file lock seen": lambda: lock(36, fcntl.F_WRLCK),
    "flock": lambda: did(LIBC.flock(FILE, fcntl.LOCK_SH | fcntl.LOCK_NB)),
    "lease set": lambda: did(LIBC.fcntl(FILE, 1024, fcntl.F_RDLCK)),
    "lease seen": lambda: did(LIBC.fcntl(FILE, 1025)),
    "directory notice": lambda: did(LIBC.fcntl(FOLDER, 1026, 1)),
    "owner of signals": lambda: did(LIBC.fcntl(FILE, 8, os.getpid())),
    "signal of a file": lambda: did(LIBC.fcntl(FILE, 10, 10)),
    "inotify": lambda: did(LIBC.inotify_init1(-1)),
    "fanotify": lambda: call("fanotify_init", -1, 0),
    "a file kept open": lambda: bool(LIBC.lseek(FILE, 0, os.SEEK_CUR) >= 0),
    "a file inherited": lambda: bool(INHERITED),
    "free space of a disk": lambda: os.statvfs(COMMON).f_bfree >= 0,
    "number of mounts": lambda: call("statx", -100, COMMON.encode(), 0, 0x4000, BUFFER),
    "a file elsewhere": lambda: bool(os.stat("/etc/passwd")),
    "other processes": lambda: bool(os.listdir("/proc")),
    "load of processors": lambda: bool(os.listdir("/sys/devices/system/cpu/cpu0")),
    "a file made": lambda: bool(os.open("/tmp/hubbub-sandbox-leak", os.O_CREAT | os.O_RDWR)),
    "time of last reading": touches,
    # Other processes
    "signal": lambda: did(LIBC.kill(OTHER, 0)),
    "signal to a thread": lambda: call("tgkill", OTHER, OTHER, 0),
    "handle of a process": lambda: bool(os.pidfd_open(OTHER)),
    "memory of a process": lambda: did(LIBC.process_vm_readv(OTHER, None, 0, None, 0, 0)),
    "trace of a process": lambda: did(LIBC.ptrace(0x4206, NOBODY, None, None)),
    "comparison of processes": lambda: call("kcmp", OTHER, OTHER, 0, 0, 0),
    "limits of another": lambda: bool(resource.prlimit(OTHER, resource.RLIMIT_NOFILE)),
    "limits of its own, set": lambda: runs(resource.setrlimit, resource.RLIMIT_CORE, (0, 0)),
    "processors of another": lambda: bool(os.sched_getaffinity(OTHER)),
    "processors chosen": lambda: runs(os.sched_setaffinity, 0, os.sched_getaffinity(0)),
    "priority of all": lambda: did(LIBC.getpriority(os.PRIO_USER, 0)),
    "priority set": lambda: runs(os.setpriority, os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)),
    "priority of disk": lambda: call("ioprio_get", 1, OTHER),
    "scheduling set": lambda: call("sched_setattr", NOBODY, None, 0),
    "times of processes": lambda: call("times", BUFFER),
    "use of the machine": lambda: bool(resource.getrusage(resource.RUSAGE_SELF)),
    "use by children": lambda: bool(resource.getrusage(resource.RUSAGE_CHILDREN)),
    "memory of the machine": lambda: did(LIBC.sysinfo(BUFFER)),
    "mask of files": lambda: did(LIBC.umask(0o22)),
    # Numbers that count what others do
    "thread": starts_thread,
    "process": forks,
    "process number": lambda: os.getpid() != 1,
    "thread number": lambda: threading.get_native_id() != 1,
    "parent's number": lambda: os.getppid() > 0,
    # Memory and messages
    "named memory": lambda: runs(os.listdir, "/dev/shm"),
    "System V memory": lambda: did(LIBC.shmget(77, 0, 0)),
    "System V semaphore": lambda: did(LIBC.semget(77, 0, 0)),
    "System V queue": lambda: did(LIBC.msgget(77, 0)),
    "POSIX queue": lambda: did(LIBC.mq_open(b"/hubbub-sandbox-leak", os.O_RDWR, 0, None)),
    "memory file": lambda: bool(os.memfd_create("leak")),
    "event": lambda: bool(os.eventfd(0)),
    "pipe": lambda: bool(os.pipe()),
    "socket of a name": lambda: runs(socket.socket(socket.AF_UNIX).bind, "\0hubbub-sandbox-leak"),
    "socket pair": lambda: bool(socket.socketpair()),
    "network": lambda: bool(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
    "messages with files": lambda: did(LIBC.recvmsg(0, BUFFER, socket.MSG_DONTWAIT | socket.MSG_PEEK)),
    "shared memory": lambda: maps(mmap.MAP_SHARED | mmap.MAP_ANONYMOUS),
    "shared pages of a file": lambda: maps(mmap.MAP_SHARED, FILE),
    "futex in a common page": lambda: call("futex", WORD & ~3, 1, 1, 0, 0, 0),
    "futexes in common pages": lambda: did(LIBC.syscall(449, None, 0, 0, None, 0)),
    "page faults": lambda: call("userfaultfd", -1),
    "io_uring": lambda: did(LIBC.syscall(425, 0, None)),
    "key added": lambda: call("add_key", b"no such type", b"leak", b"x", 1, -4),
    "keys seen": lambda: call("keyctl", 0, -4, 0),
    "key asked for": lambda: call("request_key", b"user", b"leak", None, 0),
    "performance counters": lambda: call("perf_event_open", None, 0, -1, -1, 0),
    "programs for the kernel": lambda: call("bpf", 9999, bytes(64), 64),
    # Page cache and memory of the machine
    "pages in memory": lambda: did(LIBC.mincore(ctypes.c_void_p(WORD & ~4095), ctypes.c_size_t(1), BUFFER)),
    "pages of a file": lambda: did(LIBC.syscall(451, FILE, bytes(16), BUFFER, 0)),
    "reading without waiting": lambda: bool(os.preadv(FILE, [bytearray(1)], 0, os.RWF_NOWAIT)),
    "pages read ahead": lambda: LIBC.posix_fadvise(FILE, ctypes.c_long(0), ctypes.c_long(1), 4) == 0,
    "pages given up": lambda: advises(8),
    "pages put out": lambda: advises(21),
    "huge pages made": lambda: advises(25),
    "pages merged": lambda: advises(12),
    "pool of huge pages": lambda: maps(mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000),
    "pages locked": lambda: did(LIBC.mlock(BUFFER, ctypes.c_size_t(1))),
    # Clocks
    "time": lambda: moves(time.time),
    "monotonic time": lambda: moves(time.monotonic),
    "time of the processor": lambda: moves(time.process_time),
    "time by a call": lambda: call("clock_gettime", 1, BUFFER),
    "time of day by a call": lambda: call("gettimeofday", BUFFER, None),
    "counter of the processor": lambda: moves(counter),
    "counter given back": lambda: did(LIBC.prctl(26, 1, 0, 0, 0)),
    "clock mapped again": lambda: did(LIBC.arch_prctl(0x2003, 0x7000_0000)),
    "time of the channel": channel_time,
    "timer": lambda: did(LIBC.setitimer(0, bytes(32), None)),
    "timer of its own": lambda: did(LIBC.timer_create(1, None, BUFFER)),
    "timer with a file": lambda: did(LIBC.timerfd_create(1, 0)),
    "sleep": lambda: did(LIBC.usleep(1)),
    "wait with a limit": lambda: did(LIBC.poll(None, 0, 1)),
    "processor in use": lambda: call("getcpu", BUFFER, None, None),
    "interruptions": lambda: call("rseq", ctypes.addressof(BUFFER) + 31 & ~31, 32, 0, 0x53053053),
    # Ways out
    "namespace": lambda: did(LIBC.unshare(1)),
    "another root": lambda: did(LIBC.chroot(b"/does/not/exist")),
    "mount": lambda: did(LIBC.mount(b"x", b"/does/not/exist", b"tmpfs", 0, None)),
    "filter with a listener": lambda: call("seccomp", 1, 8, None),
}  # fmt: skip


def tried() -> list[float]:
    """1 for each attempt that gets through."""
    results = []
    for attempt in ATTEMPTS.values():
        try:
            results.append(float(attempt()))
        except (OSError, RuntimeError, ValueError, AttributeError):
            results.append(0.0)
    return results


def probe(rows: dict[str, Any]) -> list[float]:
    """All attempts, as they went while the program was loaded, and as they go with rows."""
    if len(rows["x"]) != 3:
        EARLY[:] = tried()
    return [*EARLY, *tried()]


def converse(rows: dict[str, Any]) -> float:
    """Say by locks, and by waiting in a common page, that the first row is 1; look for that if it is 2."""
    if rows["x"][0] == 1.0:
        LIBC.fcntl(FILE, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0))
        LIBC.flock(FILE, fcntl.LOCK_EX | fcntl.LOCK_NB)
        value = ctypes.c_uint32.from_address(WORD & ~3).value
        while True:
            call("futex", WORD & ~3, 0, value, 0, 0, 0)
    seen = 0
    for _ in range(30_000 if rows["x"][0] == 2.0 else 0):
        wanted = ctypes.create_string_buffer(struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
        if did(LIBC.fcntl(FILE, fcntl.F_GETLK, wanted)) and struct.unpack("hhqqi4x", wanted.raw[:32])[0] != 2:
            seen |= 1
        if LIBC.flock(FILE, fcntl.LOCK_SH | fcntl.LOCK_NB) == -1 and ctypes.get_errno() == 11:
            seen |= 2
        if LIBC.syscall(ctypes.c_long(NUMBERS["futex"][0 if X86 else 1]), _wide(WORD & ~3), 1, 1, None, None, 0) > 0:
            seen |= 4
    return float(seen)
