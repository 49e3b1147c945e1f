"""Ways to break what the gate stands on, from outside its processes, and to mend it:
the servers' sockets lie behind links that a test takes away."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection

from tests.stack import Stack

NAME = "breaking"
TINY = "64k"
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
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp"))
    database, broker = settings.HOLDPOINT.database_url, settings.HOLDPOINT.redis_url
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
    url = url.replace("/holdpoint?", f"/{name}?")
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
        with psycopg.connect(settings.HOLDPOINT.database_url, autocommit=True) as one:
            one.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s",
                [NAME],
            )
        yield


@contextlib.contextmanager
def broker_down(folder: Path) -> Iterator[None]:
    with _away(folder / "valkey"):
        with redis.Redis.from_url(settings.HOLDPOINT.redis_url) as one:
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
def table_full(table: str) -> Iterator[None]:
    """What PostgreSQL says when its disk is full, at this table's next row."""
    with connection.cursor() as cursor:
        cursor.execute(REFUSE.format(table=table))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER breaking_full ON {table}")
            cursor.execute("DROP FUNCTION breaking_full()")


@contextlib.contextmanager
def note_full(state: Path) -> Iterator[bool]:
    """The file beside the database is on a disk of 64 KiB, and that is full; where the
    kernel permits no such disk it is /dev/full. Yields whether it was a real disk."""
    note, disk = state / "epoch", state / "tiny"
    note.unlink(missing_ok=True)
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={TINY}", "tmpfs", str(disk)]
    real = subprocess.run(options, capture_output=True, check=False).returncode == 0
    if real:
        (disk / "epoch").touch()
        _fill(disk / "filling")
    note.symlink_to(disk / "epoch" if real else "/dev/full")
    try:
        yield real
    finally:
        note.unlink()
        if real:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)
        disk.rmdir()


def _fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as filling:
        while True:
            filling.write(bytes(4096))
