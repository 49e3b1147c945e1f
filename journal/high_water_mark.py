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
from functools import lru_cache
from pathlib import Path

import redis
from django.conf import settings

KEY = "holdpoint:epoch"
COPY_EVERY_S = 1.0
LONGEST_FILE = 64 * 1024
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
class Seen:
    """One place in the history of a database; greater is later. `leaf` is the SHA-256
    of the leaf of `record`."""

    epoch: int
    record: int
    leaf: str
    system: str
    database: int
    timeline: str


class Unreadable(Exception):
    """The file exists and contains no readable mark."""


def path() -> Path:
    """The path of the mark file."""
    return settings.HOLDPOINT.state / "epoch"


def read() -> Seen | None:
    """The greatest mark of this host; None on a new host. Raises CorruptMarkFile, or
    OSError when the disk cannot be read at the moment."""
    try:
        found = path().stat()
        if not found.st_size:
            return None
        return _furthest(path(), found.st_ino, found.st_size, found.st_mtime_ns)
    except FileNotFoundError:
        return None


def known() -> Seen | None:
    """The greatest mark of this host, or the broker's copy where the file is corrupt.
    None where neither has one. Raises OSError as `read_mark`."""
    try:
        return read()
    except Unreadable:
        with suppress(redis.RedisError):
            return _exchange(None)
    return None


def set_aside() -> None:
    """Rename a corrupt file, so that the next mark starts a new one. Call it only after
    the restore is recorded for people to confirm."""
    if not _is_readable():
        with _open(fcntl.LOCK_EX):
            if not _is_readable():  # another process may have renamed it meanwhile
                path().replace(path().with_name("epoch.unreadable"))


def _is_readable() -> bool:
    try:
        read()
    except Unreadable:
        return False
    return True


@lru_cache(maxsize=4)
def _furthest(file: Path, inode: int, size: int, changed: int) -> Seen:
    """The greatest mark in the file. Several processes write lines in any order. The
    arguments after `file` only key the cache."""
    places = _places(file)
    if not places:
        raise Unreadable(str(file))
    return max(places)


def _places(file: Path) -> list[Seen]:
    return [place for line in file.read_bytes().split(b"\n") if (place := _of(line))]


def _of(line: bytes | str) -> Seen | None:
    # A line that a crash cut short does not count.
    with suppress(ValueError, TypeError):
        return Seen(**json.loads(line))
    return None


def keep(seen: Seen) -> None:
    """Append the mark to the file and flush it to disk. Raises OSError, for example
    when the disk is full."""
    line = f"\n{_text(seen)}\n".encode()
    with _open(fcntl.LOCK_SH) as file:
        whole = os.write(file, line) == len(line)
        os.fsync(file)
        size = os.fstat(file).st_size
    if not whole:
        _empty()
        raise OSError(errno.ENOSPC, "cut short", str(path()))
    if size > LONGEST_FILE:
        _shorten()


def _empty() -> None:
    """Empty a file whose only line was cut short: it never held a mark, so it must not
    count as corrupt."""
    with _open(fcntl.LOCK_EX) as file:
        if not _places(path()):
            os.ftruncate(file, 0)


@contextmanager
def _open(lock: int) -> Iterator[int]:
    """The descriptor of the current file under `lock` (fcntl.LOCK_SH or LOCK_EX). It
    opens the file again if another process replaced it before the lock was taken."""
    while True:
        file = os.open(path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, lock)
            if os.fstat(file).st_nlink:
                yield file
                return
        finally:
            os.close(file)


def _shorten() -> None:
    with _open(fcntl.LOCK_EX):
        seen = read()
        if seen is None:
            return
        draft = path().with_name("epoch.draft")
        with draft.open("w") as file:
            file.write(f"{_text(seen)}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path())


def _text(seen: Seen) -> str:
    return json.dumps(asdict(seen))


class _Copy:
    """When this process last exchanged marks with the broker, by time.monotonic()."""

    asked_at: float | None = None


_copy = _Copy()


def share(*, at_once: bool = False) -> None:
    """Set both the file and the broker's copy to the greater of the two marks, at most
    once a second unless `at_once`. Errors of the broker are ignored: while it is down,
    each host relies on its own file.

    Raises CorruptMarkFile and OSError as `read_mark` and `write_mark` do.
    """
    now = time.monotonic()
    recent = _copy.asked_at is not None and now - _copy.asked_at < COPY_EVERY_S
    if recent and not at_once:
        return
    _copy.asked_at = now
    mine = read()
    with suppress(redis.RedisError):
        theirs = _exchange(mine)
        if theirs is not None and (mine is None or theirs > mine):
            keep(theirs)


def _exchange(mine: Seen | None) -> Seen | None:
    url = settings.HOLDPOINT.redis_url
    options = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
    with redis.Redis.from_url(url, **options) as client:
        if mine is None:
            kept = client.get(KEY)
        else:
            kept = client.eval(_KEEP_GREATER, 1, KEY, _text(mine))
    return _of(kept) if isinstance(kept, bytes | str) else None
