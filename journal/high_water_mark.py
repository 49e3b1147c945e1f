"""What this host last saw of the log, kept outside the database: a file beside the keys
and a copy in the broker. Only here can be seen that an older database came back."""

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
# The greater of two stays: hosts tell the broker in any order.
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
    """A place in one database's history. `leaf` is the SHA-256 of that record's."""

    epoch: int
    record: int
    leaf: str
    system: str
    database: int
    timeline: str


class Unreadable(Exception):
    """There is a file, and nothing in it can be read."""


def path() -> Path:
    return settings.HOLDPOINT.state / "epoch"


def read() -> Seen | None:
    """The furthest place this host saw; None on a new host. Raises Unreadable, or
    OSError when the disk does not give it just now."""
    try:
        found = path().stat()
        if not found.st_size:
            return None
        return _furthest(path(), found.st_ino, found.st_size, found.st_mtime_ns)
    except FileNotFoundError:
        return None


def known() -> Seen | None:
    """The same, or of a file that nobody can read what the broker remembers."""
    try:
        return read()
    except Unreadable:
        with suppress(redis.RedisError):
            return _exchange(None)
    return None


def set_aside() -> None:
    """A file that nobody can read makes way, once people were told of it: the next one
    begins anew."""
    if not _is_readable():
        with _open(fcntl.LOCK_EX):
            if not _is_readable():  # nor did another process set it aside meanwhile
                path().replace(path().with_name("epoch.unreadable"))


def _is_readable() -> bool:
    try:
        read()
    except Unreadable:
        return False
    return True


@lru_cache(maxsize=4)
def _furthest(file: Path, inode: int, size: int, changed: int) -> Seen:
    """The greatest line, in whatever order several processes wrote theirs."""
    places = _places(file)
    if not places:
        raise Unreadable(str(file))
    return max(places)


def _places(file: Path) -> list[Seen]:
    return [place for line in file.read_bytes().split(b"\n") if (place := _of(line))]


def _of(line: bytes | str) -> Seen | None:
    # A line that a crash cut short is none.
    with suppress(ValueError, TypeError):
        return Seen(**json.loads(line))
    return None


def keep(seen: Seen) -> None:
    """Write it down for good. Raises OSError, on a full disk for one."""
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
    """A first line that was cut short is none: there is nothing to read in it, and
    nothing was lost."""
    with _open(fcntl.LOCK_EX) as file:
        if not _places(path()):
            os.ftruncate(file, 0)


@contextmanager
def _open(lock: int) -> Iterator[int]:
    """The file that is there now, held so that nobody replaces it meanwhile."""
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
    """This process's dealings with the broker's copy, at most one a second."""

    asked_at: float | None = None


_copy = _Copy()


def share(*, at_once: bool = False) -> None:
    """Bring file and broker to the further of both. Best effort: a broker may be gone,
    and then each host has its own file."""
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
