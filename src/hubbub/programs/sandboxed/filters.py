"""A filter of system calls by number and argument, as a program for the kernel (seccomp-BPF)."""

import ctypes
import errno
import platform
import struct
from collections.abc import Sequence

from . import calls
from .system import call

_LOAD, _MASK, _EQUAL, _AT_LEAST, _GIVE = 0x20, 0x54, 0x15, 0x35, 0x06
"""BPF: load a word, mask it, compare it, return (linux/bpf_common.h)."""
_ALLOW, _TRACE, _FAIL = 0x7FFF0000, 0x7FF00000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
"""Where struct seccomp_data holds them."""
_FOREIGN = 0x40000000
"""From here on numbers are those of x32, another way into the same kernel."""

Step = tuple[int, int, int, int]


def assemble(names: Sequence[str], *, machine: str | None = None) -> bytes:
    """Write the filter that allows these calls, each under its rules, and lets every other one fail."""
    name = machine or platform.machine()
    numbers = calls.NUMBERS[name]
    steps: list[Step] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, calls.MACHINES[name]),
        (_GIVE, 0, 0, _FAIL | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _FOREIGN),
        (_GIVE, 0, 0, _FAIL | errno.EPERM),
        (_EQUAL, 0, 1, calls.READY),
        (_GIVE, 0, 0, _TRACE),
    ]
    for absent in calls.ABSENT:
        steps += [(_EQUAL, 0, 1, numbers[absent]), (_GIVE, 0, 0, _FAIL | errno.ENOSYS)]
    for allowed in names:
        if allowed in numbers:
            block = [step for rule in calls.RULES.get(allowed, ()) for step in _checking(rule)]
            steps += [(_EQUAL, 0, len(block) + 1, numbers[allowed]), *block, (_GIVE, 0, 0, _ALLOW)]
    steps.append((_GIVE, 0, 0, _FAIL | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _checking(rule: calls.CallRule) -> list[Step]:
    """Go on behind the block if the rule holds, and fail otherwise."""
    many = len(rule.values)
    return [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * rule.argument + 4 * rule.high),
        (_MASK, 0, 0, rule.mask),
        *((_EQUAL, many - place, 0, value) for place, value in enumerate(rule.values)),
        (_GIVE, 0, 0, _FAIL | errno.EPERM),
    ]


def install(names: Sequence[str]) -> None:
    """Take a filter oneself; it holds for good, and across execve."""
    text = assemble(names)
    buffer = ctypes.create_string_buffer(text, len(text))
    header = ctypes.create_string_buffer(describe_filter(text, ctypes.addressof(buffer)))
    call("a filter of system calls (seccomp)", calls.NUMBERS[platform.machine()]["seccomp"], 1, 0, header)


def describe_filter(text: bytes, address: int) -> bytes:
    """The structure that seccomp reads: how many steps there are, and where."""
    return struct.pack("@HP", len(text) // 8, address)
