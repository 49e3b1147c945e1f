"""The ways in which an operator keeps a database and puts it back: a cold copy, a base
backup with the log that followed, a dump."""

from __future__ import annotations

import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from hitl.local import postgres
from tests.journeys.elsewhere import Elsewhere
from tests.stack import wait_until

POINT = "drill"  # a name in the log: what came after it is not put back


@dataclass
class Backup(ABC):
    """Of one installation, in a folder that is not there yet."""

    other: Elsewhere
    folder: Path

    @abstractmethod
    def take(self) -> None:
        """While nobody works, or it would not be of one moment."""

    @abstractmethod
    def put_back(self) -> None:
        """In the place of what is there, which is lost."""

    def query(self, *statements: str) -> list[tuple[object, ...]]:
        """The rows of the last of these."""
        with self.session() as connection:
            rows = [connection.execute(one.encode()) for one in statements]
            return rows[-1].fetchall() if rows[-1].description else []

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        url = self.other.here.database_url(self.other.password)
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection

    def run(self, binary: str, *arguments: str) -> None:
        """One of PostgreSQL's own programs."""
        here = postgres.detect_host(self.other.here)
        socket = str(self.other.here.postgres_socket)
        said = {"PGPASSWORD": self.other.password, "PGHOST": socket}
        who = {"PGUSER": postgres.USER, "PGDATABASE": postgres.DATABASE}
        command = here.argv(binary, *arguments)
        subprocess.run(command, env={**said, **who}, user=here.user, check=True)


class ColdCopy(Backup):
    def take(self) -> None:
        self.other.stop_database()
        shutil.copytree(self.other.data, self.folder, symlinks=True)
        self.other.start_database()

    def put_back(self) -> None:
        self.other.stop_database()
        shutil.rmtree(self.other.data)
        shutil.copytree(self.folder, self.other.data, symlinks=True)
        self.other.start_database()


class PointInTime(Backup):
    """A copy of the running server, and the log from then on as far as one point."""

    def take(self) -> None:
        archive = self.folder / "archive"
        archive.mkdir(parents=True)
        self.query(
            "ALTER SYSTEM SET archive_mode = 'on'",
            f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'",
        )
        self.other.stop_database()
        self.other.start_database()
        self._copy()
        self.query(f"SELECT pg_create_restore_point('{POINT}')")
        self.query("SELECT pg_switch_wal()")

    def _copy(self) -> None:
        with self.session() as connection:
            connection.execute("SELECT pg_backup_start('drill', true)")
            leave = shutil.ignore_patterns("postmaster.*", "0000*")
            shutil.copytree(
                self.other.data / "pg_wal",
                self.folder / "base" / "pg_wal",
                ignore=leave,
            )
            shutil.copytree(
                self.other.data,
                self.folder / "base",
                symlinks=True,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("postmaster.*", "pg_wal"),
            )
            done = connection.execute("SELECT labelfile FROM pg_backup_stop()")
            (label,) = done.fetchone() or ("",)
        (self.folder / "base" / "backup_label").write_text(label)

    def put_back(self) -> None:
        self.other.stop_database()
        shutil.rmtree(self.other.data)
        shutil.copytree(self.folder / "base", self.other.data, symlinks=True)
        (self.other.data / "recovery.signal").touch()
        with (self.other.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"restore_command = 'cp {self.folder}/archive/%f %p'\n"
                f"recovery_target_name = '{POINT}'\n"
                "recovery_target_action = 'promote'\n"
            )
        self.other.start_database()
        wait_until(lambda: not self._recovers(), 60)

    def _recovers(self) -> bool:
        return self.query("SELECT pg_is_in_recovery()") == [(True,)]


class Dump(Backup):
    """Read into a new server, whose transactions count from the beginning."""

    def take(self) -> None:
        self.folder.mkdir()
        self.run("pg_dump", "--format=custom", f"--file={self.folder}/dump")

    def put_back(self) -> None:
        self.other.stop_database()
        shutil.rmtree(self.other.data)
        self.other.start_database()
        self.run("pg_restore", "--dbname=counterseal", f"{self.folder}/dump")


WAYS: dict[str, Callable[[Elsewhere, Path], Backup]] = {
    "a point in time": PointInTime,
    "a cold copy": ColdCopy,
    "a dump in another server": Dump,
}
