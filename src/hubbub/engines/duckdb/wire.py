"""Messages between this process and the engine's: JSON behind its length, and nothing that is ever executed."""

import json
import select
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">Q")
MOST = 1 << 32
ROUSE = "rouse"
"""What a process hears ahead of a request that somebody is making up: be ready."""
GO = "go"
"""What a process waits for before it reads anything."""


def send(channel: socket.socket, message: Any) -> None:
    """One message, whole."""
    body = json.dumps(message).encode()
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket) -> Any:
    """One message, whole; EOFError where the other side has gone."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    if length > MOST:
        raise EOFError
    return json.loads(_exactly(channel, length))


def is_readable(channel: socket.socket | int, seconds: float = 0.0) -> bool:
    """Return whether something can be read, or the other side has gone, within so many seconds.

    Descriptors have any number here: ``select.select`` takes none beyond 1,023.
    """
    watch = select.poll()
    watch.register(channel, select.POLLIN)
    return bool(watch.poll(seconds * 1e3))


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
