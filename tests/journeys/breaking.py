"""Ways to break what the gate stands on, from outside its processes, and to mend it:
the servers' sockets lie behind links that a test takes away."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection

from tests.stack import Stack

NAME = "breaking"
TINY, SMALL = "64k", 16 << 20
REFUSE = """
CREATE FUNCTION breaking_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device'
        USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER breaking_full BEFORE INSERT ON {table}
    FOR EACH ROW EXECUTE FUNCTION breaking_full()
"""


@contextlib.contextmanager
def linked(stack: Stack) -> Iterator[Path]:
    """This stack finds both servers by links in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp"))
    database, broker = settings.COUNTERSEAL.database_url, settings.COUNTERSEAL.redis_url
    there = Path(str(connection.settings_dict["HOST"]))
    if not (there.is_absolute() and broker.startswith("unix://")):
        pytest.skip(
            "these servers are somebody else's: taken away on the embedded ones"
        )
    socket = Path(broker.removeprefix("unix://").partition("?")[0])
    (folder / "pg").symlink_to(there)
    (folder / "valkey").symlink_to(socket)
    name = str(connection.settings_dict["NAME"])
    url = database.replace(quote(str(there), safe=""), quote(f"{folder}/pg", safe=""))
    url = url.replace("/counterseal?", f"/{name}?")
    stack.extra["DATABASE_URL"] = f"{url}&application_name={NAME}"
    stack.extra["REDIS_URL"] = broker.replace(str(socket), str(folder / "valkey"))
    try:
        yield folder
    finally:
        for key in ("DATABASE_URL", "REDIS_URL"):
            del stack.extra[key]
        shutil.rmtree(folder)


@contextlib.contextmanager
def database_down(folder: Path) -> Iterator[None]:
    """Nobody gets in, and who is in is thrown out."""
    with _away(folder / "pg"):
        with psycopg.connect(settings.COUNTERSEAL.database_url, autocommit=True) as one:
            one.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s",
                [NAME],
            )
        yield


@contextlib.contextmanager
def broker_down(folder: Path) -> Iterator[None]:
    with _away(folder / "valkey"):
        with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as one:
            one.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        yield


@contextlib.contextmanager
def _away(link: Path) -> Iterator[None]:
    target = link.readlink()
    link.unlink()
    try:
        yield
    finally:
        link.symlink_to(target)


@contextlib.contextmanager
def disk_full(folder: Path, table: str) -> Iterator[bool]:
    """This table is on a small disk, and that is full; where the kernel permits no such
    disk, or the server is another user's, PostgreSQL is made to say so. Yields whether
    it was a real disk."""
    with _disk(folder / "disk", _room(table)) as real:
        if not (real and _is_ours()):
            with _refusing(table):
                yield False
            return
        filling = folder / "disk" / "filling"
        with _moved(table, folder / "disk" / "tables"):
            _fill(filling)
            try:
                yield True
            finally:
                filling.unlink()


def _room(table: str) -> str:
    """Bytes that the table takes, and some: without what tests before this one wrote
    and took back, which would leave a full disk room for many rows more."""
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM (FULL) {table}")
        cursor.execute("SELECT pg_table_size(%s)", [table])
        (taken,) = cursor.fetchone()
    return str(taken + SMALL)


def _is_ours() -> bool:
    """Whether the server can write where we can."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        (folder,) = cursor.fetchone()
    return Path(folder).stat().st_uid == os.geteuid()


@contextlib.contextmanager
def _moved(table: str, to: Path) -> Iterator[None]:
    """The table lies there. Whoever serves it must be able to write there too."""
    to.mkdir(mode=0o700)
    place = f"CREATE TABLESPACE breaking LOCATION '{to}'"
    move = f"ALTER TABLE {table} SET TABLESPACE"
    with (
        _between(place, "DROP TABLESPACE breaking"),
        _between(f"{move} breaking", f"{move} pg_default"),
    ):
        yield


def _refusing(table: str) -> AbstractContextManager[None]:
    """What PostgreSQL says when its disk is full, at this table's next row."""
    return _between(
        REFUSE.format(table=table),
        f"DROP TRIGGER breaking_full ON {table}; DROP FUNCTION breaking_full()",
    )


@contextlib.contextmanager
def _between(begin: str, end: str) -> Iterator[None]:
    """In the database from one statement to another."""
    with connection.cursor() as cursor:
        cursor.execute(begin)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(end)


@contextlib.contextmanager
def note_full(state: Path) -> Iterator[bool]:
    """The file beside the database is on a disk of 64 KiB, and that is full; where the
    kernel permits no such disk it is /dev/full. Yields whether it was a real disk."""
    note, disk = state / "epoch", state / "tiny"
    with _disk(disk, TINY) as real:
        if real:
            (disk / "epoch").touch()
            _fill(disk / "filling")
        link = state / "link"
        link.symlink_to(disk / "epoch" if real else "/dev/full")
        link.replace(note)  # in one step: the worker would write a note in between
        try:
            yield real
        finally:
            note.unlink()


@contextlib.contextmanager
def _disk(folder: Path, size: str) -> Iterator[bool]:
    """A disk of this size at the folder; False where the kernel permits none."""
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    real = subprocess.run(options, capture_output=True, check=False).returncode == 0
    try:
        yield real
    finally:
        if real:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def _fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as filling:
        while True:
            filling.write(bytes(4096))
