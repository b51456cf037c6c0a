"""Clocks that stand still: every way to read one gives the same constant, and the kernel's time pages are gone.

Time is read in four ways. The kernel maps functions into each process (the vDSO) that read it from pages beside them:
the functions are overwritten by ones that give a constant, and the pages are unmapped. System calls are refused
(``calls``). The processor's counter traps (PR_SET_TSC), and the supervisor answers zero. Threads and timers, which
could count, are refused.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterator

from . import calls
from .system import LIBC, Missing
from .tracing import Tracee

SECONDS = 946_684_800
"""What every clock says: the first second of the year 2000."""
_WHAT = "a clock that stands still"
_SET_COUNTER, _TRAPS = 26, 2
_VDSO = 33
"""AT_SYSINFO_EHDR: where the vDSO lies."""

_X86 = struct.pack("<i", SECONDS).hex()
_ARM = struct.pack("<II", 0xD2800002 | (SECONDS & 0xFFFF) << 5, 0xF2A00002 | (SECONDS >> 16) << 5).hex()
"""movz and movk of the constant into x2."""
CODE: dict[str, dict[str, bytes]] = {
    machine: {name: bytes.fromhex(text) for name, text in stubs.items()}
    for machine, stubs in {
        "x86_64": {
            # mov [rsi], SECONDS; mov [rsi+8], 0; xor eax, eax; ret
            "__vdso_clock_gettime": f"48c706{_X86} 48c7460800000000 31c0 c3",
            # The same for rdi, unless it is null.
            "__vdso_gettimeofday": f"4885ff 740f 48c707{_X86} 48c7470800000000 31c0 c3",
            # mov eax, SECONDS; and to rdi, unless it is null
            "__vdso_time": f"b8{_X86} 4885ff 7403 488907 c3",
            # A resolution of one second.
            "__vdso_clock_getres": "4885f6 740f 48c70601000000 48c7460800000000 31c0 c3",
            # Processor 0 of node 0.
            "__vdso_getcpu": "4885ff 7406 c70700000000 4885f6 7406 c70600000000 31c0 c3",
            # The system call; but ENOSYS where only its parameters are asked for (r8 = -1), so that nobody uses this.
            "__vdso_getrandom": "4983f8ff 7408 b83e010000 0f05 c3 48c7c0daffffff c3",
        },
        "aarch64": {
            # stp x2, xzr, [x1]; mov x0, 0; ret
            "__kernel_clock_gettime": f"{_ARM} 227c00a9 000080d2 c0035fd6",
            # cbz x0; stp x2, xzr, [x0]; mov x0, 0; ret
            "__kernel_gettimeofday": f"800000b4 {_ARM} 027c00a9 000080d2 c0035fd6",
            # cbz x1; mov x2, 1; stp x2, xzr, [x1]; mov x0, 0; ret
            "__kernel_clock_getres": "610000b4 220080d2 227c00a9 000080d2 c0035fd6",
            # cmn x4, 1; b.eq; mov x8, 278; svc 0; ret; mov x0, -38; ret
            "__kernel_getrandom": "9f0400b1 80000054 c82280d2 010000d4 c0035fd6 a0048092 c0035fd6",
        },
    }.items()
}
_GETTIME = {"x86_64": "__vdso_clock_gettime", "aarch64": "__kernel_clock_gettime"}
_BEHIND = 32
"""Where in that function, behind the new one, the supervisor keeps a system call for its own use."""


def stop_clocks(tracee: Tracee) -> int:
    """Replace the vDSO's functions, unmap its pages of time, and take the counter. Return where a call can be made."""
    machine = platform.machine()
    symbols = dict(_symbols())
    base, pages = _find_vdso(tracee.process)
    for name, code in CODE[machine].items():
        if name in symbols:
            offset, size = symbols[name]
            needed = _BEHIND + len(tracee.machine.gadget) if name == _GETTIME[machine] else len(code)
            if size < needed:
                raise Missing(_WHAT, f"{name} is too short")
            tracee.write(base + offset, code)
    gadget = base + symbols[_GETTIME[machine]][0] + _BEHIND
    tracee.write(gadget, tracee.machine.gadget)
    for start, end in pages:
        _check_result(tracee.call(gadget, calls.NUMBERS[machine]["munmap"], start, end - start))
    _check_result(tracee.call(gadget, calls.NUMBERS[machine]["prctl"], _SET_COUNTER, _TRAPS, 0, 0, 0))
    return gadget


def _check_result(result: int) -> None:
    if result < 0:
        raise Missing(_WHAT, os.strerror(-result))


def _find_vdso(process: int) -> tuple[int, list[tuple[int, int]]]:
    """Find the vDSO in a process, and the pages of time beside it."""
    base, pages = 0, []
    with open(f"/proc/{process}/maps", encoding="utf-8") as file:
        for line in file:
            span, *_, name = line.split()
            start, end = (int(part, 16) for part in span.split("-"))
            if name == "[vdso]":
                base = start
            elif name.startswith("[vvar"):
                pages.append((start, end))
    return base, pages


def _symbols() -> Iterator[tuple[str, tuple[int, int]]]:
    """Each function of the vDSO, with its offset and its size: all processes of this machine have the same one."""
    LIBC.getauxval.restype = ctypes.c_ulong
    base = LIBC.getauxval(ctypes.c_ulong(_VDSO))
    (headers,) = struct.unpack("<Q", ctypes.string_at(base + 32, 8))
    size, many = struct.unpack("<HH", ctypes.string_at(base + 54, 4))
    table: dict[int, int] = {}
    for place in range(many):
        kind, _, _, address, _, length = struct.unpack("<IIQQQQ", ctypes.string_at(base + headers + place * size, 40))
        if kind == 2:  # PT_DYNAMIC
            content = ctypes.string_at(base + address, length)
            table = dict(struct.iter_unpack("<QQ", content))
    names, entries = table[5], table[6]  # DT_STRTAB, DT_SYMTAB
    place = entries
    while place < names:  # linkers put the strings behind the symbols
        word, _, _, _, value, length = struct.unpack("<IBBHQQ", ctypes.string_at(base + place, 24))
        yield ctypes.string_at(base + names + word).decode("ascii"), (value, length)
        place += 24


def answer_counter(tracee: Tracee) -> bool:
    """Give zero for the processor's counter, if that is what the process has stumbled over."""
    registers = tracee.registers()
    at = tracee.machine.at
    code = tracee.read(registers[at])
    if platform.machine() == "aarch64":
        word = struct.unpack("<I", code[:4])[0]
        if word & ~0xFF != 0xD53BE000:  # mrs xN of cntvct_el0, cntvctss_el0 or cntfrq_el0, which all trap
            return False
        if word & 31 < 31:
            registers[word & 31] = 0
        registers[at] += 4
    else:
        serial = code[:3] == b"\x0f\x01\xf9"  # rdtscp, which names the processor, too
        if not serial and code[:2] != b"\x0f\x31":  # rdtsc
            return False
        for register in (10, 12, 11) if serial else (10, 12):  # rax, rdx, rcx
            registers[register] = 0
        registers[at] += 3 if serial else 2
    tracee.set_registers(registers)
    return True
