"""Calls of the C library that say what failed, and messages between Hubbub and a supervisor."""

import ctypes
import json
import os
import socket
import struct
from typing import Any

LIBC: Any = ctypes.CDLL(None, use_errno=True)
_LENGTH = struct.Struct(">Q")


class Missing(Exception):
    """The system does not give what a sandbox needs."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"this system does not give it {what} ({why})")


def check(code: int, what: str) -> int:
    """Return a call's result; raise Missing, which names what it was for."""
    if code < 0:
        raise Missing(what, os.strerror(ctypes.get_errno()))
    return code


def describe(problem: BaseException) -> str:
    """Say in a clause why a program cannot be loaded."""
    return str(problem) if isinstance(problem, Missing) else f"{type(problem).__name__}: {problem}"


def call(what: str, number: int, *arguments: Any) -> int:
    """Make a system call by its number."""
    LIBC.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return check(LIBC.syscall(ctypes.c_long(number), *wide), what)


def send(channel: socket.socket, message: Any) -> None:
    """Send one message, whole."""
    body = json.dumps(message).encode()
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket) -> Any:
    """Receive one message, whole."""
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
