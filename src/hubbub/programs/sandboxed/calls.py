"""The system calls that a program may make, and their arguments: tables by machine.

Everything that is not listed fails: processes and threads, sockets, pipes and events, shared memory, message queues,
keys, locks, leases and signals, limits and priorities, and every clock. What is listed concerns the process itself, or
reads files that are the same for every block and that no block can change.
"""

from typing import NamedTuple

READY = 1000
"""No call of any kernel: the program's process makes it to stop for its supervisor (SECCOMP_RET_TRACE)."""


class CallRule(NamedTuple):
    """A condition on one 32-bit half of an argument: masked, it is one of the values."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    high: bool = False


MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH of each machine, from linux/audit.h."""

NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "mmap": 9,
        "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
        "ioctl": 16, "pread64": 17, "readv": 19, "writev": 20, "access": 21, "mremap": 25, "madvise": 28, "dup": 32,
        "dup2": 33, "getpid": 39, "execve": 59, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89,
        "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "sigaltstack": 131,
        "prctl": 157, "arch_prctl": 158, "gettid": 186, "futex": 202, "sched_getaffinity": 204, "getdents64": 217,
        "set_tid_address": 218, "restart_syscall": 219, "exit_group": 231, "openat": 257, "newfstatat": 262,
        "readlinkat": 267, "faccessat": 269, "set_robust_list": 273, "dup3": 292, "prlimit64": 302, "seccomp": 317,
        "getrandom": 318, "statx": 332, "close_range": 436, "faccessat2": 439, "pivot_root": 155, "capset": 126,
    },
    "aarch64": {
        "getcwd": 17, "dup": 23, "dup3": 24, "fcntl": 25, "ioctl": 29, "pivot_root": 41, "faccessat": 48,
        "openat": 56, "close": 57, "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66,
        "pread64": 67, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "capset": 91, "exit": 93, "exit_group": 94,
        "set_tid_address": 96, "futex": 98, "set_robust_list": 99, "sched_getaffinity": 123, "restart_syscall": 128,
        "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "uname": 160,
        "prctl": 167, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177,
        "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "execve": 221, "mmap": 222, "mprotect": 226,
        "madvise": 233, "prlimit64": 261, "seccomp": 277, "getrandom": 278, "statx": 291, "close_range": 436,
        "faccessat2": 439,
    },
}  # fmt: skip
"""The numbers of all calls that are named here, from the kernel's tables. A machine lacks what it has no need of."""

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
"""Calls of later kernels, which have one number on all machines."""

LAST_FILE = 0x7FFFFFFF
"""For close_range: all that are open."""

WITH_ROWS = (
    "read", "write", "readv", "writev", "close", "lseek", "mprotect", "munmap", "brk", "mremap", "rt_sigaction",
    "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "getpid", "gettid", "getuid", "getgid", "geteuid", "getegid",
    "restart_syscall", "getrandom", "exit", "exit_group", "mmap", "madvise", "futex", "fcntl",
)  # fmt: skip
"""What a function may ask of the system once it has rows: memory, chance, and the open channel."""

LOADING = (
    *WITH_ROWS, "open", "openat", "stat", "fstat", "lstat", "newfstatat", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat", "getdents64", "getcwd", "pread64", "uname", "getppid", "dup", "dup2", "dup3",
    "set_tid_address", "set_robust_list", "close_range", "ioctl", "prlimit64", "sched_getaffinity", "arch_prctl",
    "prctl", "seccomp",
)  # fmt: skip
"""And what it may ask before, while it loads, and a command always: files of the installation, which the mounts and
Landlock hold it to, its own limits, and the calls that the supervisor has it make."""

EXECUTING = (*LOADING, "execve")

ABSENT = ("statx",)
"""Refused as unknown, so that libraries use an older call: this one shows the machine's number of mounts."""

RULES: dict[str, tuple[CallRule, ...]] = {
    # Private memory only (MAP_PRIVATE, not MAP_SHARED), and no page of the machine's pool of huge ones (MAP_HUGETLB).
    "mmap": (CallRule(3, (0x02,), mask=0x03 | 0x40000),),
    # NORMAL to DONTNEED, HUGEPAGE, NOHUGEPAGE, DONTDUMP. MADV_FREE shows when memory gets short, MADV_PAGEOUT empties
    # the page cache, MADV_COLLAPSE and MADV_MERGEABLE depend on other processes.
    "madvise": (CallRule(2, (0, 1, 2, 3, 4, 14, 15, 16)),),
    # Only with FUTEX_PRIVATE_FLAG (128): others meet in the pages of a common file, libc's constants for one. They are
    # WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET; 256 is FUTEX_CLOCK_REALTIME.
    "futex": (CallRule(1, tuple(128 + operation for operation in (0, 1, 3, 4, 5, 9, 10)), mask=0xFFFFFFFF - 256),),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL and F_DUPFD_CLOEXEC: no locks, leases, owners, signals or pipe sizes.
    "fcntl": (CallRule(1, (0, 1, 2, 3, 4, 1030)),),
    # TCGETS (is it a terminal?), FIONCLEX and FIOCLEX: no time stamps, no queues.
    "ioctl": (CallRule(1, (0x5401, 0x5450, 0x5451)),),
    # One's own limits, to read.
    "prlimit64": (CallRule(0, (0,)), CallRule(2, (0,)), CallRule(2, (0,), high=True)),
    "sched_getaffinity": (CallRule(0, (0,)),),
    # ARCH_SET_FS: what a C library starts with. ARCH_MAP_VDSO_64 would bring the clock back.
    "arch_prctl": (CallRule(0, (0x1002,)),),
    # PR_SET_TSC to PR_TSC_SIGSEGV: what the supervisor has it call. Never back.
    "prctl": (CallRule(0, (26,)), CallRule(1, (2,))),
    # SECCOMP_SET_MODE_FILTER without flags, so without a listener: more filters can only forbid more.
    "seccomp": (CallRule(0, (1,)), CallRule(1, (0,))),
}
