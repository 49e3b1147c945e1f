"""The high-water mark: the last log record that this host saw, kept outside of the
database in a file beside the keys, with a copy in the broker.

Only by comparison with it can a process detect that an older database was restored.
Several processes append marks to the file; the greatest line counts.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import redis
from django.conf import settings

BROKER_KEY = "counterseal:epoch"
COPY_EVERY_S = 1.0
MAX_FILE_BYTES = 8 * 1024  # it is read whole, so a longer one is slower to read
# The broker keeps the greater mark, because hosts write in any order.
_KEEP_GREATER = """
local kept = redis.call('GET', KEYS[1])
if kept then
    local old = cjson.decode(kept)
    local new = cjson.decode(ARGV[1])
    if old.epoch > new.epoch
       or (old.epoch == new.epoch and old.record >= new.record) then return kept end
end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
"""


@dataclass(frozen=True, slots=True, order=True)
class HighWaterMark:
    """One place in the history of a database; greater is later. `leaf` is the SHA-256
    of the leaf of `record`."""

    epoch: int
    record: int
    leaf: str
    system: str
    database: int
    timeline: str


class CorruptMarkFile(Exception):
    """The file exists and contains no readable mark."""


def build_mark_path() -> Path:
    return Path(settings.COUNTERSEAL.state) / "epoch"


class _LastReading:
    """The file as this process read it last, and the greatest mark in it. It is read
    again when it has changed."""

    reading: tuple[tuple[Path, int, int, int], HighWaterMark] | None = None


_last = _LastReading()


def read_mark() -> HighWaterMark | None:
    """The greatest mark of this host; None on a new host. Raises CorruptMarkFile, or
    OSError when the disk cannot be read at the moment."""
    try:
        path = build_mark_path()
        stat = path.stat()
        if not stat.st_size:
            return None
        version = (path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        last = _last.reading
        if last is None or last[0] != version:
            marks = _parse_marks(path.read_bytes())
            if not marks:
                raise CorruptMarkFile(str(path))
            last = _last.reading = version, max(marks)
    except FileNotFoundError:
        return None
    return last[1]


def find_best_known_mark() -> HighWaterMark | None:
    """The greatest mark of this host, or the broker's copy where the file is corrupt.
    None where neither has one. Raises OSError as `read_mark`."""
    try:
        return read_mark()
    except CorruptMarkFile:
        with suppress(redis.RedisError):
            return _exchange_with_broker(None)
    return None


def set_aside_corrupt_file() -> None:
    """Rename a corrupt file, so that the next mark starts a new one. Call it only after
    the restore is recorded for people to confirm."""
    if not _is_readable():
        with _open_locked(fcntl.LOCK_EX):
            if not _is_readable():  # another process may have renamed it meanwhile
                build_mark_path().replace(
                    build_mark_path().with_name("epoch.unreadable")
                )


def _is_readable() -> bool:
    try:
        read_mark()
    except CorruptMarkFile:
        return False
    return True


def _parse_marks(content: bytes) -> list[HighWaterMark]:
    return [place for line in content.split(b"\n") if (place := _parse_mark(line))]


def _parse_mark(line: bytes | str) -> HighWaterMark | None:
    # A line that a crash cut short does not count.
    with suppress(ValueError, TypeError):
        return HighWaterMark(**json.loads(line))
    return None


def write_mark(seen: HighWaterMark) -> None:
    """Append the mark to the file and flush it to disk. Raises OSError."""
    line = f"\n{_format_mark(seen)}\n".encode()
    with _open_locked(fcntl.LOCK_SH) as file:
        whole = os.write(file, line) == len(line)
        os.fsync(file)
        size = os.fstat(file).st_size
    if not whole:
        _truncate_partial_file()
        raise OSError(errno.ENOSPC, "cut short", str(build_mark_path()))
    if size > MAX_FILE_BYTES:
        _compact_file()


def _truncate_partial_file() -> None:
    """Empty a file that never held a whole mark, so that it is not corrupt."""
    with _open_locked(fcntl.LOCK_EX) as file:
        if not _parse_marks(build_mark_path().read_bytes()):
            os.ftruncate(file, 0)


@contextmanager
def _open_locked(lock: int) -> Iterator[int]:
    """The descriptor of the current file under `lock` (fcntl.LOCK_SH or LOCK_EX). It
    opens the file again if another process replaced it before the lock was taken."""
    while True:
        file = os.open(build_mark_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, lock)
            if os.fstat(file).st_nlink:
                yield file
                return
        finally:
            os.close(file)


def _compact_file() -> None:
    with _open_locked(fcntl.LOCK_EX):
        seen = read_mark()
        if seen is None:
            return
        draft = build_mark_path().with_name("epoch.draft")
        with draft.open("w") as file:
            file.write(f"{_format_mark(seen)}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(build_mark_path())


def _format_mark(seen: HighWaterMark) -> str:
    return json.dumps(asdict(seen))


class _BrokerCopy:
    """When this process last exchanged marks with the broker, by time.monotonic()."""

    asked_at: float | None = None


_broker_copy = _BrokerCopy()


def sync_with_broker(*, at_once: bool = False) -> None:
    """Set both the file and the broker's copy to the greater of the two marks, at most
    once a second unless `at_once`. Errors of the broker are ignored: while it is down,
    each host relies on its own file. A mark of the same epoch on another timeline is
    not taken over: this host has to find its own there first (journal/failover.py).
    Raises CorruptMarkFile and OSError as `read_mark` and `write_mark` do."""
    now = time.monotonic()
    recent = (
        _broker_copy.asked_at is not None and now - _broker_copy.asked_at < COPY_EVERY_S
    )
    if recent and not at_once:
        return
    _broker_copy.asked_at = now
    own_mark = read_mark()
    with suppress(redis.RedisError):
        theirs = _exchange_with_broker(own_mark)
        if theirs is not None and (own_mark is None or _follows(theirs, own_mark)):
            write_mark(theirs)


def _follows(theirs: HighWaterMark, own: HighWaterMark) -> bool:
    # guard: failover-own-note
    if theirs.epoch == own.epoch and theirs.timeline != own.timeline:
        return False
    return theirs > own


def _exchange_with_broker(own_mark: HighWaterMark | None) -> HighWaterMark | None:
    url = settings.COUNTERSEAL.redis_url
    options = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
    with redis.Redis.from_url(url, **options) as client:
        if own_mark is None:
            answer = client.get(BROKER_KEY)
        else:
            answer = client.eval(_KEEP_GREATER, 1, BROKER_KEY, _format_mark(own_mark))
    return _parse_mark(answer) if isinstance(answer, bytes | str) else None
