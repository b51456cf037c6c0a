"""A process under trace (ptrace): it stops where its supervisor says, and makes system calls in its name."""

import ctypes
import os
import platform
import signal
import struct
from dataclasses import dataclass
from typing import Any

from .system import LIBC, Missing, check

_WHAT = "a supervisor (ptrace)"
_TRACE_ME, _PEEK, _POKE, _CONTINUE, _UNTIL_CALL = 0, 1, 4, 7, 24
_SET_OPTIONS, _GET_REGISTERS, _SET_REGISTERS = 0x4200, 0x4204, 0x4205
_MARK_CALLS, _EXEC, _SECCOMP, _EXIT_KILLS = 1, 1 << 4, 1 << 7, 1 << 20
_EVENT_EXEC, _EVENT_SECCOMP = 4, 7
_GENERAL = 1
"""NT_PRSTATUS: the general registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The layout of registers in the kernel's structure (user_regs_struct, user_pt_regs), and the
    instruction of a call.
    """

    registers: int
    number: int
    result: int
    arguments: tuple[int, ...]
    at: int
    """The register that says which instruction is next."""
    restart: int | None
    """The register that makes the kernel repeat a call, where it is one of these."""
    gadget: bytes
    """A system call, and a trap behind it."""


MACHINES = {
    "x86_64": Machine(
        registers=27, number=10, result=10, arguments=(14, 13, 12, 7, 9, 8), at=16, restart=15,
        gadget=bytes.fromhex("0f05 cc"),
    ),
    "aarch64": Machine(
        registers=34, number=8, result=0, arguments=(0, 1, 2, 3, 4, 5), at=32, restart=None,
        gadget=bytes.fromhex("010000d4 000020d4"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a process stopped."""

    signal: int = 0
    executed: bool = False
    called: bool = False
    """It made a call that the filter has reported."""


class Tracee:
    """A traced child; only the thread that forked it may use this."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.machine = MACHINES[platform.machine()]

    def begin(self) -> None:
        """Wait for the child's first stop; from then on it dies with us, and execve and READY are reported."""
        self._wait()
        _trace(_SET_OPTIONS, self.process, 0, _MARK_CALLS | _EXEC | _SECCOMP | _EXIT_KILLS)

    def resume(self, sent: int = 0) -> Stop | None:
        """Let it run, with a signal if there is one, until it stops; None when it has ended."""
        _trace(_CONTINUE, self.process, 0, sent)
        return self._wait()

    def _wait(self) -> Stop | None:
        _, status = os.waitpid(self.process, 0)
        if not os.WIFSTOPPED(status):
            return None
        event = status >> 16
        sent = 0 if event else os.WSTOPSIG(status)
        return Stop(signal=sent, executed=event == _EVENT_EXEC, called=event == _EVENT_SECCOMP)

    def finish_call(self) -> None:
        """Go to the end of the call that it is in, where its registers are its own again."""
        _trace(_UNTIL_CALL, self.process, 0, 0)
        if (stop := self._wait()) is None or stop.signal != signal.SIGTRAP | 0x80:
            raise Missing(_WHAT, "the program did not stop")

    def registers(self) -> list[int]:
        """All general registers."""
        size = 8 * self.machine.registers
        buffer = ctypes.create_string_buffer(size)
        self._move_registers(_GET_REGISTERS, buffer)
        return list(struct.unpack(f"={self.machine.registers}Q", buffer.raw))

    def set_registers(self, values: list[int]) -> None:
        """Replace all general registers."""
        packed = struct.pack(f"={self.machine.registers}Q", *(value & (1 << 64) - 1 for value in values))
        self._move_registers(_SET_REGISTERS, ctypes.create_string_buffer(packed, len(packed)))

    def _move_registers(self, how: int, buffer: Any) -> None:
        vector = struct.pack("@PN", ctypes.addressof(buffer), len(buffer))
        where = ctypes.create_string_buffer(vector, len(vector))
        _trace(how, self.process, _GENERAL, ctypes.addressof(where))

    def read(self, address: int) -> bytes:
        """Eight bytes of its memory."""
        ctypes.set_errno(0)
        word = LIBC.ptrace(_PEEK, self.process, ctypes.c_void_p(address), None)
        if ctypes.get_errno():
            raise Missing(_WHAT, os.strerror(ctypes.get_errno()))
        return struct.pack("=q", word)

    def write(self, address: int, content: bytes) -> None:
        """Change its memory, also where it cannot write itself."""
        for start in range(0, len(content), 8):
            part = content[start : start + 8]
            whole = part + self.read(address + start)[len(part) :]
            _trace(_POKE, self.process, address + start, struct.unpack("=q", whole)[0])

    def call(self, gadget: int, number: int, *arguments: int) -> int:
        """Have it make a system call, and put everything back."""
        before = self.registers()
        values = list(before)
        for register, value in zip(self.machine.arguments, arguments, strict=False):
            values[register] = value
        values[self.machine.number], values[self.machine.at] = number, gadget
        if self.machine.restart is not None:
            values[self.machine.restart] = -1
        self.set_registers(values)
        stop = self.resume()
        if stop is None or stop.signal != signal.SIGTRAP:
            raise Missing(_WHAT, "the program did not stop")
        result = self.registers()[self.machine.result]
        self.set_registers(before)
        signed = result - (1 << 64) if result >> 63 else result
        return signed


def wait_for_supervisor() -> None:
    """Be traced by the parent, and stop until it is ready."""
    _trace(_TRACE_ME, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def _trace(request: int, process: int, address: int, data: int) -> None:
    LIBC.ptrace.restype = ctypes.c_long
    code = LIBC.ptrace(request, process, ctypes.c_void_p(address), ctypes.c_void_p(data))
    check(code, _WHAT)
