"""The child of the first process: it reads declared files, answers one request and ends.

Nothing that is received is ever executed but the one statement, and that on a locked engine without network. Files are
opened here once and read through their descriptors, and the answer says what these were (``Opened``).
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import threading
from collections.abc import Iterable
from typing import Any

from hubbub.engines.duckdb.opened import Opened, literal, open_files
from hubbub.engines.duckdb.wire import GO, ROUSE, receive, send

_DEATH_SIGNAL = 1
_MANY = 1000
"""Public keys beyond which the engine is faster with a table of them than with a list in the statement."""
_FEW = 4
"""Files whose names are put into a statement: a variable for them takes a third of a millisecond to set."""
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
_NEW_USER, _NEW_NETWORK, _NEW_MOUNTS, _FOLLOW = 0x10000000, 0x40000000, 0x20000, 0x84000
"""Parts of the system of one's own; and: what others mount is seen here too, and nothing of ours is seen there."""


_GONE = getattr(select, "POLLRDHUP", 0)
"""That the other side sends no more; that it has closed its end is always told."""


class Changed(Exception):
    """A database is not as it was opened, or is open for writing elsewhere: seen before any row is read."""


def live(channel: socket.socket, parent: int, connection: Any, made_up: str | None) -> None:
    """Do everything after the fork; it never returns."""
    status = 1
    try:
        _confine(parent)
        serve(channel, connection, made_up)
        status = 0
    except BaseException:
        pass
    finally:
        os._exit(status)


def _confine(parent: int) -> None:
    """Dies with its parent, has its own group, leaves no core, and sees no network where the system lets it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):  # only Linux has these two
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        both = _NEW_NETWORK | _NEW_MOUNTS
        for apart in (both, _NEW_USER | both, _NEW_NETWORK, _NEW_USER | _NEW_NETWORK):
            if libc.unshare(apart) == 0:
                Opened.mounts = bool(apart & _NEW_MOUNTS) and libc.mount(None, b"/", None, _FOLLOW, None) == 0
                break
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_files(size: int) -> None:
    """No file grows beyond this, or beyond what we may raise the limit to."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def serve(channel: socket.socket, connection: Any, made_up: str | None) -> None:
    """Get ready, wait for the one request, and answer it.

    An engine that came with the fork is warm, and its memory is still shared: one round more, and a rehearsal, make
    what a question touches this process's own. There is no time for that while somebody waits. By the time that a
    question comes, much of it has left the processor's caches: whoever is roused fetches it again meanwhile.
    """
    limits = receive(channel)
    os.chdir(limits["scratch"])
    _limit_files(limits["bytes"])
    rounds = 0 if limits["hurry"] else 1
    if connection is None:
        import duckdb

        connection = duckdb.connect(":memory:")
        settle(connection)
        rounds *= ROUNDS
    limit(connection, limits)
    threading.Thread(target=_watch, args=(channel,), daemon=True).start()
    warm_up(connection, rounds)
    if rounds:
        rehearse(connection, made_up)
    send(channel, {"ready": os.getpid()})
    while (request := receive(channel)) == ROUSE:
        rehearse(connection, made_up)
    try:
        ahead = Ahead(connection, {**request, "scratch": limits["scratch"]})
    except BaseException as error:
        problem: BaseException | None = error
    else:
        problem = None
    if receive(channel) != GO:
        return
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
    """End when the other side has gone. What it sends is not waited for here: the main thread reads that."""
    ending = select.poll()
    ending.register(channel, _GONE)
    ending.poll()
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
        self._opened = Opened(request["paths"], request.get("scratch", ""))
        for name, paths in request["files"]:
            names = _list(literal(self._opened.names[path]) for path in paths)
            if len(paths) > _FEW:
                _set(connection, (f"VARIABLE {_quote(name)}", names))
            else:
                statement = statement.replace(f"getvariable({_text(name)})", names)
        (self._parsed,) = connection.extract_statements(statement)

    def rows(self) -> list[list[Any]]:
        """Reads, and gives back what was asked."""
        lock(self._connection, self._request, self._opened)
        return self.read()

    def open(self) -> None:
        """Open the files, and shut no door."""
        self._opened.open()

    def close(self) -> None:
        """Close the files."""
        self._opened.close()

    def read(self) -> list[list[Any]]:
        """Return what was asked, of files that are open."""
        for statement, held in self._many:
            self._connection.execute(statement, held)
        return [list(row) for row in self._connection.execute(self._parsed, self._parameters).fetchall()]

    def files(self) -> list[tuple[str, Any]]:
        """Return the mark of what was read for each path, as it is now."""
        return self._opened.marks()


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
_READ = (
    'SELECT 0 AS "code", CAST(coalesce(sum(t), 0) AS VARCHAR) FROM (SELECT least(count(*), CAST(9 AS BIGINT)) AS t '
    "FROM (SELECT CASE WHEN isfinite(TRY_CAST(b AS DOUBLE)) THEN TRY_CAST(b AS DOUBLE) END AS c, TRY_CAST(a AS BIGINT) "
    "AS u FROM read_parquet(getvariable('made_up'), utf8_validation = 'replace')) AS q WHERE u IS NOT NULL AND c > 3.5 "
    "GROUP BY u) AS q"
)
"""The same for a count of rows in a file, as the printer writes it."""
_MADE_UP = "SELECT i // 9 AS a, i % 7 AS b FROM range(2000) AS t(i)"
ROUNDS = 3
"""After three a small question takes a tenth less than after one; more gain nothing."""


def settle(connection: Any) -> None:
    """Set what is the same for every request."""
    _set(connection, *_SETTLED)


def warm_up(connection: Any, rounds: int) -> None:
    """Do what questions do, on made-up numbers."""
    for _ in range(rounds):
        connection.execute(_WARM, [["0", "1"], [0, 1], 1]).fetchall()


def make_up(connection: Any, path: str) -> None:
    """Write the file that is rehearsed with."""
    connection.execute(f"COPY ({_MADE_UP}) TO {_text(path)} (FORMAT parquet)")


def rehearse(connection: Any, made_up: str | None) -> None:
    """Go from a request to its answer on made-up rows, as a question will, but for the locks that stay."""
    if made_up is None:
        return
    with contextlib.suppress(Exception):  # the question itself says what is wrong
        told = {"statement": _READ, "secrets": [], "keys": [], "paths": [made_up], "files": [["made_up", [made_up]]]}
        ahead = Ahead(connection, json.loads(json.dumps(told)))
        ahead.open()
        _set(connection, ("allowed_paths", _list([])))
        json.dumps({"rows": ahead.read(), "files": ahead.files()})
        ahead.close()


def limit(connection: Any, limits: dict[str, Any]) -> None:
    """Set how much one request may use."""
    own = [
        ("temp_directory", _text(limits["scratch"])),
        ("max_temp_directory_size", _text(limits["temporary"])),
        ("memory_limit", _text(limits["memory"])),
        ("threads", str(int(limits["threads"] or os.cpu_count() or 1))),
        *([("perfect_ht_threshold", str(int(limits["bits"])))] if limits.get("bits") else []),
    ]
    _set(connection, *own)


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
    paths = _list(dict.fromkeys([*opened.names.values(), *map(literal, opened.names.values())]))
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
