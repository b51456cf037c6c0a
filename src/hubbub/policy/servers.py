"""Tables of a PostgreSQL server as sources: where they are, without who logs in there, and how they are reached.

The place names a database in fingerprints, ledgers and sentences. What the URL leaves out is completed as libpq does it
(PGHOST, PGPORT, PGDATABASE and their like, a service), so that the same URL in another environment is another place.
User and password are no part of it: who reads does not change the rows, since tables with row-level security
are refused.
"""

import re
from urllib.parse import quote

from hubbub.errors import ParameterError, PolicyError
from hubbub.parameters import connection_parts
from hubbub.policy.tables import TableSource

_URL = re.compile(r"postgres(ql)?://")


def is_server(path: object) -> bool:
    """Return whether something is the URL of a PostgreSQL database."""
    return isinstance(path, str) and _URL.match(path) is not None


def place_of(dsn: str) -> str:
    """Name the database that a URL leads to, without user, password and options."""
    from psycopg.pq import Conninfo  # there, or the parts would not be

    parts = connection_parts("path", dsn)
    given = {option.keyword.decode(): option.val for option in Conninfo.get_defaults()}
    usual = {name: value.decode() for name, value in given.items() if value is not None}
    service = parts.get("service")
    if service is not None:
        usual = {}  # its file says the rest
    host = parts.get("host") or parts.get("hostaddr") or usual.get("host") or usual.get("hostaddr") or ""
    port = parts.get("port") or usual.get("port") or ""
    user = parts.get("user") or usual.get("user") or ""
    database = parts.get("dbname") or usual.get("dbname") or ("" if service else user)
    end = f"?service={quote(service, safe='')}" if service is not None else ""
    return f"postgresql://{quote(host, safe=',')}{':' if port else ''}{port}/{quote(database, safe='')}{end}"


def has_password(dsn: str) -> bool:
    """Return whether a URL holds a password."""
    return "password" in connection_parts("path", dsn)


def without_password(dsn: str) -> str:
    """Return a URL without its password, which libpq then takes from a passfile or PGPASSWORD."""
    if not has_password(dsn):
        return dsn
    user_info = re.sub(r"^(postgres(?:ql)?://[^/?#@]*?):[^/?#]*@", r"\1@", dsn)
    found = re.sub(r"([?&])password=[^&]*&?", r"\1", user_info).rstrip("?&")
    if has_password(found):
        raise PolicyError("Leave the password out of the URL: put it into a passfile, or PGPASSWORD.", name="path")
    return found


def postgres(
    url: str, *, table: str, schema: str = "public", copy: bool | None = None, view: bool = False
) -> TableSource:
    """Name a table of a PostgreSQL database, to be opened: ``hb.open(hb.postgres(url, table="stays"), …)``.

    What the URL leaves out is taken from libpq's environment (PGUSER, PGPASSFILE, PGSERVICE, …). The table's name is
    spelt as in the catalogue. ``copy=True`` takes a snapshot of it when it is opened; ``view=True`` is your word that
    each row of a view is made of one unit's rows alone.
    """
    if not is_server(url):
        raise ParameterError("path", "the URL of a database, such as postgresql://user@host/database", type(url))
    return TableSource(
        format="postgres", paths=(place_of(url),), schema=schema, table=table, dsn=url, copy=copy, view=view
    )
