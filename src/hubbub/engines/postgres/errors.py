"""What goes wrong with a server, in sentences for its owner that hold no password and no value of a row."""

from collections.abc import Iterator
from contextlib import contextmanager

from hubbub.errors import MissingExtra, PolicyError

try:
    import psycopg
except ImportError as missing:
    raise MissingExtra("psycopg", "postgres") from missing


@contextmanager
def explain_failure(place: str) -> Iterator[None]:
    """Name what went wrong by the kind of it; ``place`` is the server and the database, without a password."""
    try:
        yield
    except psycopg.Error as problem:
        raise PolicyError(f"{place}: {_sentence(problem)}", name="path") from None


def _sentence(problem: psycopg.Error) -> str:
    """Say what to do; the server's own words are left out, since they can quote values and connection strings."""
    code = problem.sqlstate or ""
    match code[:2], code:
        case _, "28P01" | "28000":
            return "the server lets this role not in. Check the user, its password (or passfile) and pg_hba.conf."
        case _, "3D000":
            return "there is no such database. Correct its name."
        case _, "42501":
            return (
                "the role may not read what the policy declares. Grant it: GRANT USAGE ON SCHEMA … TO …; GRANT SELECT "
                "(…) ON … TO …."
            )
        case ("57", _) | ("08", _):
            return "the server ended the connection. Try again when it is up."
        case _, "40001":
            return "the server, a standby, needed the rows elsewhere and ended the snapshot. Try again."
        case _, "55P03":
            return "a table is locked by somebody else. Try again."
        case ("53", _):
            return "the server has too little room or too many connections. Try again."
        case ("", _):
            return (
                "the server cannot be reached. Check the host, the port and that it runs; what the URL does not say "
                "comes from PGHOST, PGPORT, PGUSER, PGPASSFILE, PGSERVICE and the like."
            )
    return f"the server refused to read it (SQLSTATE {code}). Look at the server's log."
