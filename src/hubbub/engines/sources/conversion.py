"""Text files become Parquet once, and that defines their rows: questions read nothing else.

The result lies beside the file, named like it with ``.hubbub.parquet`` behind, and is used again as long as the file
has the stamp that it had before and after it was read. Where that cannot be known (the file was written to a moment
ago) or the folder cannot be written to, the result lies in a directory of the engine's own, and goes with it.

Privacy:
    Claim: whether a question's read succeeds does not depend on what a record of a text file holds.
    Proof: the conversion ends before anything can be paid for. What does not parse is left out there, record by record
        (``delimited``, ``json_records``), and everything else is a text, which Parquet holds whatever it is.
    Needs: a result that nobody else could have put there: it belongs to us, to the owner of the file, or to the
        system's administrator.
    Ref: SOUNDNESS 35, 36 and 38.
"""

import contextlib
import gzip
import io
import json
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hubbub.engines.duckdb.scan import call_reader, quote_text
from hubbub.engines.sources.delimited import Delimited, Read
from hubbub.engines.sources.json_records import JsonRecords
from hubbub.engines.sources.rewritten import LeftOut, decode_rows
from hubbub.errors import PolicyError
from hubbub.policy.sources import CONVERTED
from hubbub.policy.stamps import Stamp, name_of, stamp_files, stamp_opened

FORMAT = 1
"""Of the rules of reading; a result of other rules is made again."""
_KEY = "hubbub"
_PART = 1 << 28
"""Bytes of rewritten text that lie on the disk at a time."""
_ATTEMPTS = 3

Progress = Callable[[int, int], None]
"""Is told how many bytes of the file were read, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The Parquet file of a text file."""

    path: str
    columns: tuple[str, ...]
    rows: int
    left_out: LeftOut
    source: Stamp
    """The state of the text file that it was made from."""
    file: Stamp
    """The state of the Parquet file itself, of which all this was read or written."""


def convert(path: str, format_: str, *, directory: str, progress: Progress | None = None) -> Converted:
    """Find the Parquet file of a text file, or make it. ``directory`` is the engine's own.

    PolicyError where the file as a whole is none of its format, cannot be read, or does not come to rest.
    """
    beside = path + CONVERTED
    for _ in range(_ATTEMPTS):
        stamp, now = stamp_files([path]), time.time_ns()
        kept = _find_result(beside, path, stamp)
        if kept is not None:
            return kept
        target = _target(os.path.dirname(path) if stamp.is_settled(now) else None, directory)
        try:
            made = _convert(path, format_, target=target, directory=directory, stamp=stamp, progress=progress)
            if stamp_files([path]) == stamp:
                return _put_beside(made, beside if os.path.dirname(target) != directory else None)
        except _Elsewhere:
            pass
        except BaseException:
            os.unlink(target)
            raise
        os.unlink(target)
    raise PolicyError(f"{path} is being written to. Open it when it is complete.", name="path")


def _find_result(beside: str, path: str, stamp: Stamp) -> Converted | None:
    """Return the result that lies beside a file, if it is of this state of the file and can be trusted."""
    import duckdb

    try:
        with open(beside, "rb", opener=_without_links) as opened, duckdb.connect() as connection:
            found, file = os.fstat(opened.fileno()), stamp_opened(beside, opened.fileno())
            trusted = {os.geteuid(), os.stat(path).st_uid, 0}
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in trusted or found.st_mode & 0o022:
                return None
            ((value,),) = connection.execute(
                "SELECT decode(value) FROM parquet_kv_metadata($1) WHERE decode(key) = $2",
                [name_of(opened.fileno(), beside), _KEY],
            ).fetchall()
        about = json.loads(value)
        if about["format"] != FORMAT or Stamp.of_json(about["stamp"]) != stamp:
            return None
        left_out = LeftOut(count=int(about["left out"]), first=list(about["first"]), place=str(about["place"]))
        return Converted(
            path=beside,
            columns=tuple(about["columns"]),
            rows=int(about["rows"]),
            left_out=left_out,
            source=stamp,
            file=file,
        )
    except (OSError, ValueError, KeyError, TypeError, duckdb.Error):
        return None


def _target(folder: str | None, directory: str) -> str:
    """Make an empty file that only its owner can read: in the folder, or else in the engine's own directory."""
    if folder is not None:
        with contextlib.suppress(OSError):
            return _empty(folder)
    return _empty(directory)


def _empty(folder: str) -> str:
    descriptor, path = tempfile.mkstemp(prefix=".hubbub-", suffix=".parquet", dir=folder)
    os.close(descriptor)
    return path


def _put_beside(made: Converted, beside: str | None) -> Converted:
    """Put the result beside its file under its name, whole, so that a crash leaves it there or not."""
    if beside is None:
        return made
    with open(made.path, "rb") as file:
        os.fsync(file.fileno())
        os.replace(made.path, beside)
        return replace(made, path=beside, file=stamp_opened(beside, file.fileno()))


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _convert(
    path: str, format_: str, *, target: str, directory: str, stamp: Stamp, progress: Progress | None
) -> Converted:
    with tempfile.TemporaryDirectory(dir=directory) as scratch, _content(path, stamp, progress) as read:
        records = Delimited(read) if format_ == "csv" else JsonRecords(read)
        if isinstance(records, Delimited) and not records.columns:
            raise PolicyError(f"The first line of {path} does not name its columns, each once. Give it a header.")
        writer = _Writer(scratch)
        with writer:
            for block in records.rows():
                writer.write(block, records.columns)
        if not records.columns:
            raise PolicyError(f"{path} holds no JSON objects. Put one on each line, or all of them into one array.")
        about = {
            "format": FORMAT,
            "stamp": stamp.as_json(),
            "columns": list(records.columns),
            "rows": writer.rows,
            "left out": records.left_out.count,
            "first": records.left_out.first,
            "place": records.left_out.place,
        }
        if writer.finish(target, records.columns, json.dumps(about)) != writer.rows:
            raise PolicyError(f"{path} could not be converted to Parquet as it is. Convert it yourself.", name="path")
    os.chmod(target, 0o600)  # the writer may have replaced the file
    return Converted(
        path=target,
        columns=tuple(records.columns),
        rows=writer.rows,
        left_out=records.left_out,
        source=stamp,
        file=stamp_files([target]),
    )


class _Elsewhere(Exception):
    """The path led to another file when it was opened than when it was stamped."""


@contextlib.contextmanager
def _content(path: str, stamp: Stamp, progress: Progress | None) -> Iterator[Read]:
    """Open a file, packed or not; what goes wrong with all of it is said in one sentence.

    The stamp is of the file that is read, and not only of its path, which may lead elsewhere and back meanwhile.
    """
    try:
        with open(path, "rb", buffering=0) as raw:
            if stamp_opened(path, raw.fileno()) != stamp:
                raise _Elsewhere
            begun: Any = _Begun(raw, progress)
            yield gzip.GzipFile(fileobj=begun).read if path.lower().endswith(".gz") else begun.read
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise PolicyError(f"{path} is damaged or cut short. Pack it again.", name="path") from None
    except OSError as problem:
        raise PolicyError(f"{path} could not be converted ({problem.strerror}).", name="path") from None


class _Begun:
    """A file as long as it is when it is opened: one that grows meanwhile is read again, and not for ever."""

    def __init__(self, raw: io.FileIO, progress: Progress | None) -> None:
        self._raw, self._progress = raw, progress
        self._size = os.fstat(raw.fileno()).st_size

    def read(self, most: int = -1) -> bytes:
        """Give so many bytes at most, or all that are left."""
        left = self._size - self._raw.tell()
        content = self._raw.read(left if most < 0 else min(most, left))
        if self._progress is not None:
            self._progress(self._raw.tell(), self._size)
        return content


class _Writer:
    """Rewritten records as one Parquet file, by way of parts, so that not all of the text lies on the disk at once."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._text = os.path.join(scratch, "rows")
        self._parts: list[str] = []
        self._file = self._begun()
        self.rows = 0

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, block: bytes, columns: Sequence[str]) -> None:
        """Add records."""
        self.rows += block.count(b"\n")
        self._file.write(block)
        if self._file.tell() >= _PART:
            self._file.close()
            part = os.path.join(self._scratch, f"{len(self._parts)}.parquet")
            self._copy(decode_rows(self._text, columns), part)
            self._parts.append(part)
            self._file = self._begun()

    def finish(self, target: str, columns: Sequence[str], about: str) -> int:
        """Write the file, and return how many rows it has."""
        rows = decode_rows(self._text, columns)
        if self._parts:
            last = os.path.join(self._scratch, "last.parquet")
            self._copy(rows, last)
            union = {"union_by_name": "true"}
            rows = f"SELECT * FROM {call_reader('read_parquet', [*self._parts, last], union)}"
        return self._copy(rows, target, f", KV_METADATA {{{_KEY}: {quote_text(about)}}}")

    def _begun(self) -> Any:
        file = open(self._text, "wb")  # noqa: SIM115  (closed before it is read)
        file.write(b"rows\n")
        return file

    def _copy(self, rows: str, target: str, options: str = "") -> int:
        import duckdb

        settings: dict[str, Any] = {"temp_directory": self._scratch, "preserve_insertion_order": False}
        try:
            with duckdb.connect(config=settings) as connection:
                found = connection.execute(
                    f"COPY ({rows}) TO {quote_text(target)} (FORMAT parquet{options})"
                ).fetchone()
        except duckdb.IOException:
            raise PolicyError("A text file could not be converted to Parquet. Is there room on the disk?") from None
        assert found is not None
        return int(found[0])
