"""The engine's process: a program of its own that reads declared files, answers one request and ends.

It is started as a script and imports nothing of ours. The first process loads the engine and then only forks: a child
for each request, prepared before the request comes. Requests and answers are JSON behind their length; nothing that is
received is ever executed but the one statement, and that on a locked engine without network. Files are opened here
once and read through their descriptors, and the answer says what these were (``Opened``).
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Iterable
from typing import Any

_LENGTH = struct.Struct(">Q")
MOST = 1 << 32
_DEATH_SIGNAL = 1
_MANY = 1000
"""Public keys beyond which the engine is faster with a table of them than with a list in the statement."""
GO = "go"
"""What a process waits for before it reads anything."""
LOCKED, ALTERED = "locked", "altered"
_SAYS_LOCKED = "IO Error: Could not set lock on file"
"""What the engine says where another process has a database open for writing, before it reads anything of it."""
_STORED = (
    "SELECT count(*) FROM duckdb_columns() AS c SEMI JOIN duckdb_tables() AS t "
    "USING (database_oid, schema_oid, table_oid) "
    "WHERE c.database_name = $1 AND c.schema_name = 'main' AND lower(c.table_name) = $2 AND NOT c.is_generated AND "
    "list_contains($3, lower(c.column_name))"
)
"""How many of some columns are stored in a table: those of a view, and generated ones, are computed while they are
read, from whatever rows they like."""
_NEW_USER, _NEW_NETWORK, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x20000
_BIND, _FOLLOW = 0x1000, 0x84000
"""Mount one file elsewhere; and: what others mount is seen here too, and nothing of ours is seen there."""
LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""As ``policy.stamps`` has it."""
_OPEN = "/proc/self/fd"
"""Where Linux has a name for each descriptor that leads to what was opened, whatever its path leads to now."""
_SPARE = 256
"""Descriptors that are left for other things than a request's files."""


class Changed(Exception):
    """A database is not as it was opened, or is open for writing elsewhere: seen before any row is read."""


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


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# The first process


def nursery(control: socket.socket, directory: str, parent: int) -> None:
    """Forks a child for each descriptor that it is sent; ends with its parent, and leaves nothing behind."""
    import duckdb  # noqa: F401  (loaded once, for every child)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    children: list[int] = []
    own = os.getpid()
    while os.getppid() == parent:
        if not select.select([control], [], [], 1.0)[0]:
            continue
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            break
        child = os.fork()
        if child == 0:
            control.close()
            _child(socket.socket(fileno=descriptors[0]), own)
        os.close(descriptors[0])
        children = [one for one in children if _alive(one)]
        children.append(child)
    for one in children:
        if _alive(one):
            os.kill(one, signal.SIGKILL)
    shutil.rmtree(directory, ignore_errors=True)


def _alive(process: int) -> bool:
    """Return whether the process is still a child of ours."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False


def _child(channel: socket.socket, nursery_: int) -> None:
    """Everything after the fork; it never returns."""
    status = 1
    try:
        _confine(nursery_)
        serve(channel)
        status = 0
    except BaseException:
        pass
    finally:
        os._exit(status)


# The child


def _confine(nursery_: int) -> None:
    """Dies with its parent, has its own group, leaves no core, and sees no network where the system lets it."""
    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(AttributeError):  # only Linux has these two
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        both = _NEW_NETWORK | _NEW_MOUNTS
        for apart in (both, _NEW_USER | both, _NEW_NETWORK, _NEW_USER | _NEW_NETWORK):
            if libc.unshare(apart) == 0:
                Opened.mounts = bool(apart & _NEW_MOUNTS) and libc.mount(None, b"/", None, _FOLLOW, None) == 0
                break
    if os.getppid() != nursery_:
        os._exit(1)
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_files(size: int) -> None:
    """No file grows beyond this, or beyond what we may raise the limit to."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def serve(channel: socket.socket) -> None:
    """Gets ready, waits for the one request, and answers it."""
    import duckdb

    connection = duckdb.connect(":memory:")
    limits = receive(channel)
    _limit_files(limits["bytes"])
    settle(connection, limits)
    send(channel, {"ready": os.getpid()})
    request = receive(channel)
    try:
        ahead = Ahead(connection, {**request, "scratch": limits["scratch"]})
    except BaseException as error:
        problem: BaseException | None = error
    else:
        problem = None
    if receive(channel) != GO:
        return
    threading.Thread(target=_watch, args=(channel,), daemon=True).start()
    try:
        if problem is not None:
            raise problem
        answer: dict[str, Any] = {"rows": ahead.rows(), "files": ahead.files()}
    except Changed as change:
        answer = {"changed": change.args[0]}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    send(channel, answer)


def _watch(channel: socket.socket) -> None:
    """Nothing more is ever sent to us, so whatever can be read is the end of the other side."""
    channel.recv(1)
    os._exit(1)


def rows_of(connection: Any, request: dict[str, Any]) -> list[list[Any]]:
    """The rows of the request's statement, on a locked engine."""
    return Ahead(connection, request).rows()


class Ahead:
    """A request as far as it can be before it is paid for: parsed, and no file opened."""

    def __init__(self, connection: Any, request: dict[str, Any]) -> None:
        self._connection, self._request = connection, request
        self._parameters, self._many = list(request["secrets"]), list[tuple[str, list[Any]]]()
        few = []
        for table in request["keys"]:
            called, held = _quote(table["table"]), [table["values"], table["places"]]
            if len(table["places"]) > _MANY:
                self._many.append((f"CREATE TEMP TABLE {called} AS {_keys(table['type'], 1)}", held))
            else:
                few.append(f"{called} AS ({_keys(table['type'], len(self._parameters) + 1)})")
                self._parameters += held
        statement = request["statement"]
        if few:
            statement = f"WITH {', '.join(few)} SELECT * FROM ({statement})"
        (self._parsed,) = connection.extract_statements(statement)
        self._opened = Opened(request["paths"], request.get("scratch", ""))
        for name, paths in request["files"]:
            names = (literal(self._opened.names[path]) for path in paths)
            _set(connection, (f"VARIABLE {_quote(name)}", _list(names)))

    def rows(self) -> list[list[Any]]:
        """Reads, and gives back what was asked."""
        lock(self._connection, self._request, self._opened)
        for statement, held in self._many:
            self._connection.execute(statement, held)
        return [list(row) for row in self._connection.execute(self._parsed, self._parameters).fetchall()]

    def files(self) -> list[tuple[str, Any]]:
        """Return the mark of what was read for each path, as it is now."""
        return self._opened.marks()


class Opened:
    """The files of a request, each opened once; whoever reads by the names given here reads what was opened.

    A system without names for descriptors, or too many files for one process, leaves the paths themselves, and then
    there are no marks.
    """

    mounts = False
    """Whether this process has mounts of its own."""

    def __init__(self, paths: list[str], scratch: str) -> None:
        """Set descriptors aside, so that files have names before any is opened."""
        self.names = {path: path for path in paths}
        self._scratch = scratch
        self._descriptors: dict[str, int | None] = {}
        self._unread: dict[str, Any] = {}
        self._reserved: dict[str, int] = {}
        if not os.path.isdir(_OPEN) or not _room(2 * len(paths) + _SPARE):  # the engine may open each once more
            return
        for path in paths:
            self._reserved[path] = os.open(os.devnull, os.O_RDONLY)
            self.names[path] = f"{_OPEN}/{self._reserved[path]}"
        if any("=" in path for path in paths):  # folders may be called by what is in them (year=2024)
            for place, (path, name) in enumerate(self.names.items()):  # one name each: none is a pattern of another
                self.names[path] = link = f"{scratch}/files{os.path.dirname(path)}/{place}.parquet"
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(name, link)

    def open(self) -> None:
        """Open the files, each under the descriptor that was set aside for it."""
        for path, reserved in self._reserved.items():
            opened = _open_file(path)
            os.dup2(opened, reserved, inheritable=False)
            os.close(opened)
            self._descriptors[path] = reserved

    def bind(self, path: str) -> str | None:
        """Open a database with its logs, and give them a place of their own that is attached in place of the path.

        The engine takes the real path of what it attaches, and reads logs that lie beside that and closes them again.
        Here none but those that were opened lie beside it. None where this process may not mount.
        """
        real = os.path.realpath(path)
        if not self.mounts or not self._scratch:
            return None
        place = f"{self._scratch}/database{len(self._descriptors)}"
        beside, found = os.open(os.path.dirname(real), os.O_RDONLY | os.O_DIRECTORY), dict[str, int | None]()
        try:
            for log in ("", *LOGS):
                try:
                    found[log] = opened = _open_file(os.path.basename(real) + log, beside)
                except FileNotFoundError:
                    found[log] = None
                else:
                    with open(place + log, "xb"):
                        pass
                    if not _mount(f"{_OPEN}/{opened}", place + log):
                        return None
        finally:
            os.close(beside)
        self._descriptors[path] = found.pop("")
        for log, one in found.items():
            self._descriptors[real + log] = one
            if real != path:  # nobody reads it there
                self._unread[path + log] = _mark_at(path + log)
        return place

    def find_attached(self, path: str, before: set[int]) -> None:
        """Find the file that the engine has opened for a database since ``before``; of two, nobody knows which."""
        new = open_files() - before
        if os.path.isdir(_OPEN):
            self._descriptors[path] = new.pop() if len(new) == 1 else None

    def close(self) -> None:
        """Close what was opened here; a process that ends needs not."""
        for descriptor in self._reserved.values():
            os.close(descriptor)
        self._reserved = {}
        self._descriptors = {}

    def marks(self) -> list[tuple[str, Any]]:
        """Return what the system says of each file that was opened; nothing of one that cannot be found."""
        opened = [(path, None if one is None else _mark(os.fstat(one))) for path, one in self._descriptors.items()]
        return [*opened, *self._unread.items()]


def literal(name: str) -> str:
    """Write a name so that the engine takes it for no pattern of names."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _open_file(path: str, folder: int | None = None) -> int:
    """Open a file, and nothing that would have to be waited for (a pipe) or never ends (a device)."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("not a file")
    return opened


def _mount(what: str, place: str) -> bool:
    found: int = ctypes.CDLL(None).mount(what.encode(), place.encode(), None, _BIND, None)
    return found == 0


def _mark_at(path: str) -> tuple[int, ...] | None:
    try:
        return _mark(os.stat(path))
    except OSError:
        return None


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """As ``policy.stamps`` has it."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def open_files() -> set[int]:
    """The descriptors of files that are open here."""
    found = set()
    for name in os.listdir(_OPEN) if os.path.isdir(_OPEN) else []:
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            if stat.S_ISREG(os.fstat(int(name)).st_mode):
                found.add(int(name))
    return found


def _room(many: int) -> bool:
    """Return whether ``many`` files can be open at a time, after asking for as many as we may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < many:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft == resource.RLIM_INFINITY or soft >= many


def _keys(type_: str, first: int) -> str:
    """The rows of a table of public keys, out of two parameters."""
    return (
        f'SELECT CAST(unnest(CAST(${first} AS VARCHAR[])) AS {type_}) AS "value", '
        f'unnest(CAST(${first + 1} AS INTEGER[])) AS "place"'
    )


_SETTLED = (
    ("preserve_insertion_order", "false"),
    ("disabled_optimizers", "'top_n_window_elimination'"),
    ("ieee_floating_point_ops", "true"),
    ("TimeZone", "'UTC'"),
    ("allow_persistent_secrets", "false"),
    ("autoload_known_extensions", "false"),
    ("autoinstall_known_extensions", "false"),
    ("allow_community_extensions", "false"),
    ("python_enable_replacements", "false"),
)
_WARM = (
    "WITH k AS (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p) SELECT p, "
    "CAST(coalesce(sum(n), 0) AS VARCHAR), CAST(coalesce(sum(t), 0) AS VARCHAR) FROM (SELECT u, p, "
    "least(count(*), CAST(3 AS BIGINT)) AS n, coalesce(TRY_CAST(CASE WHEN sum(s) < CAST((-9) AS BIGINT) THEN "
    "CAST((-9) AS BIGINT) WHEN count(s) > 3 THEN (sum(s) * CAST(3 AS HUGEINT)) // CAST(count(s) AS HUGEINT) "
    "ELSE sum(s) END AS BIGINT), 0) AS t FROM (SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY u ORDER BY "
    "hash(xor(hash(u, CAST($3 AS UBIGINT)), CAST(p AS UBIGINT))) NULLS LAST, p NULLS LAST) AS r FROM (SELECT u, k.p, "
    "TRY_CAST(((CASE WHEN x < CAST('0.0' AS DOUBLE) THEN CAST('0.0' AS DOUBLE) ELSE x END) * CAST('16.0' AS DOUBLE)) "
    "AS BIGINT) AS s FROM (SELECT * FROM (SELECT i // 9 AS u, TRY_CAST(i % 5 AS VARCHAR) AS c, CASE WHEN "
    "isfinite(TRY_CAST(i AS DOUBLE)) THEN TRY_CAST(i AS DOUBLE) END AS x FROM range(20000) AS t(i)) WHERE u IS NOT "
    "NULL) INNER JOIN k ON c = k.v)) WHERE r <= 3) GROUP BY u, p) GROUP BY p"
)
"""What questions are made of, on numbers: what the engine does for the first time, and memory that it touches for the
first time, is done with before one is asked."""
_ROUNDS = 3
"""After three a small question takes a tenth less than after one; more gain nothing."""


def settle(connection: Any, limits: dict[str, Any]) -> None:
    """Set what is the same for every request, while there is time."""
    own = [
        ("temp_directory", _text(limits["scratch"])),
        ("max_temp_directory_size", _text(limits["temporary"])),
        ("memory_limit", _text(limits["memory"])),
        *([("threads", str(int(limits["threads"])))] if limits["threads"] else []),
        *([("perfect_ht_threshold", str(int(limits["bits"])))] if limits.get("bits") else []),
    ]
    _set(connection, *_SETTLED, *own)
    for _ in range(_ROUNDS):
        connection.execute(_WARM, [["0", "1"], [0, 1], 1]).fetchall()


def lock(connection: Any, request: dict[str, Any], opened: Opened) -> None:
    """Attaches and opens what was declared, then shuts every other door: the last line locks the rest.

    The engine resolves what is allowed at that moment, so that descriptors must be open by then.
    """
    for name, path in request["databases"].items():
        bound = opened.bind(path)
        before = open_files()
        try:
            connection.execute(f"ATTACH {_text(bound or path)} AS {_quote(name)} (READ_ONLY)")
        except Exception as problem:
            if str(problem).startswith(_SAYS_LOCKED):
                raise Changed(LOCKED) from None
            raise
        if bound is None:
            opened.find_attached(path, before)
    for catalogue, table, columns in request["stored"]:
        names = [column.lower() for column in columns]
        ((stored,),) = connection.execute(_STORED, [catalogue, table.lower(), names]).fetchall()
        if stored != len(names):
            raise Changed(ALTERED)
    opened.open()
    paths = _list([*opened.names.values(), *map(literal, opened.names.values())])
    _set(connection, ("allowed_paths", paths), ("enable_external_access", "false"), ("lock_configuration", "true"))


def _set(connection: Any, *settings: tuple[str, str]) -> None:
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings))


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, texts)) + "]"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("NUL")
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    nursery(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3]))
