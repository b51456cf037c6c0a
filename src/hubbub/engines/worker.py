"""The engine's process: a program of its own that reads declared files, answers one request and ends.

It is started as a script and imports nothing of ours. The first process loads the engine and then only forks: a child
for each request, prepared before the request comes. Requests and answers are JSON behind their length; nothing that is
received is ever executed but the one statement, and that on a locked engine without network.
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
import struct
import sys
import threading
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
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000


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
    """Whether it is still a child of ours."""
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
        if libc.unshare(_NEW_NETWORK) != 0:
            libc.unshare(_NEW_USER | _NEW_NETWORK)
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
        ahead = Ahead(connection, request)
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
        answer: dict[str, Any] = {"rows": ahead.rows()}
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
    """A request as far as it can be before it is paid for: parsed, its engine locked, and no file opened."""

    def __init__(self, connection: Any, request: dict[str, Any]) -> None:
        self._connection, self._request = connection, request
        self._parameters, self._many = list(request["secrets"]), list[tuple[str, list[Any]]]()
        few = []
        for table in request["keys"]:
            called, held = _quoted(table["table"]), [table["values"], table["places"]]
            if len(table["places"]) > _MANY:
                self._many.append((f"CREATE TEMP TABLE {called} AS {_keys(table['type'], 1)}", held))
            else:
                few.append(f"{called} AS ({_keys(table['type'], len(self._parameters) + 1)})")
                self._parameters += held
        statement = request["statement"]
        if few:
            statement = f"WITH {', '.join(few)} SELECT * FROM ({statement})"
        (self._parsed,) = connection.extract_statements(statement)
        self._locked = not request["databases"]  # to attach one is to read it
        if self._locked:
            lock(connection, request)

    def rows(self) -> list[list[Any]]:
        """Reads, and gives back what was asked."""
        if not self._locked:
            lock(self._connection, self._request)
        for statement, held in self._many:
            self._connection.execute(statement, held)
        return [list(row) for row in self._connection.execute(self._parsed, self._parameters).fetchall()]


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
    """What is the same for every request, while there is time."""
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


def lock(connection: Any, request: dict[str, Any]) -> None:
    """Attaches what was declared, then shuts every other door. The order matters: the last line locks the rest."""
    for name, path in request["databases"].items():
        try:
            connection.execute(f"ATTACH {_text(path)} AS {_quoted(name)} (READ_ONLY)")
        except Exception as problem:
            if str(problem).startswith(_SAYS_LOCKED):
                raise Changed(LOCKED) from None
            raise
    for catalogue, table, columns in request["stored"]:
        names = [column.lower() for column in columns]
        ((stored,),) = connection.execute(_STORED, [catalogue, table.lower(), names]).fetchall()
        if stored != len(names):
            raise Changed(ALTERED)
    paths = "[" + ", ".join(_text(path) for path in request["paths"]) + "]"
    _set(connection, ("allowed_paths", paths), ("enable_external_access", "false"), ("lock_configuration", "true"))


def _set(connection: Any, *settings: tuple[str, str]) -> None:
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("NUL")
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    nursery(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3]))
