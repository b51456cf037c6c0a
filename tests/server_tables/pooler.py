"""A real pgbouncer before a server for tests: transactions are pooled, so that each may run in another session."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.postgres import PostgresServer, ordinary_user

_SETTINGS = """
[databases]
* = host={server} port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 1
server_reset_query_always = 0
logfile =
pidfile = {folder}/pid
"""


@contextmanager
def pooled(server: PostgresServer, *users: str) -> Iterator[str]:
    """Run a pooler whose only session of the server, for each user, serves everybody; its folder is its host."""
    program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not here. Run: apt install pgbouncer")
    folder = server.folder / "pooler"
    folder.mkdir()
    (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users))
    (folder / "settings").write_text(_SETTINGS.format(server=server.folder, folder=folder))
    user = ordinary_user()
    if user is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    process = subprocess.Popen(
        [program, "-q", str(folder / "settings")], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user
    )
    try:
        _wait(process, f"postgresql://{users[0]}@/postgres?host={folder}&port=6432")
        yield str(folder)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        shutil.rmtree(folder)


def through(url: str, folder: str) -> str:
    """Return the URL of the same database by way of the pooler."""
    return f"{url.partition('?')[0]}?host={quote(folder, safe='')}&port=6432"


def _wait(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"pgbouncer did not start: {Path(url)}") from None
            time.sleep(0.05)
