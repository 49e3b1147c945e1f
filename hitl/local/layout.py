"""Where a private installation keeps its files, derived from `STATE` alone, so that all
its processes find the same sockets. Also defines the installation's error."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote


class InstallationError(Exception):
    """The private installation cannot continue. The text tells the person who typed the
    command, in one line, what to do; it is shown without a traceback."""


# sun_path holds 108 bytes on Linux and 104 on macOS, the final zero included.
MAX_SOCKET_LENGTH = 103
PG_SOCKET = ".s.PGSQL.5432"
SAFE = re.compile(rb"[A-Za-z0-9/._-]+")


@dataclass(frozen=True)
class Layout:
    """The folders of one `STATE`."""

    state: Path
    run: Path  # sockets

    @property
    def keys(self) -> Path:
        return self.state / "keys"

    @property
    def postgres_data(self) -> Path:
        return self.state / "postgres"

    @property
    def postgres_socket(self) -> Path:
        return self.run / "pg"

    @property
    def valkey_data(self) -> Path:
        return self.state / "valkey"

    @property
    def valkey_socket(self) -> Path:
        return self.run / "valkey.sock"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def port_file(self) -> Path:
        return self.state / "port"

    @property
    def solo_file(self) -> Path:
        """The user name and password of solo mode."""
        return self.state / "solo.json"

    @property
    def solo_mark(self) -> Path:
        """There while a gate runs in solo mode, for commands of another terminal."""
        return self.state / "solo"

    @property
    def lock(self) -> Path:
        return self.state / "up.lock"

    def database_url(self, password: str) -> str:
        folder = quote(str(self.postgres_socket), safe="")
        return f"postgresql://counterseal:{password}@/counterseal?host={folder}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.valkey_socket}"


def build_layout(state: Path) -> Layout:
    """The layout of this state folder.

    Sockets live in `STATE/run`, or in a folder under /tmp in two cases: the path is too
    long for a socket or has a character that PostgreSQL or an address would read as a
    separator; or the user is root, whose PostgreSQL may have to run as a user who
    cannot enter `STATE`.
    """
    state = state.absolute()
    run = state / "run"
    if os.geteuid() == 0 or _is_unfit_for_sockets(run):
        name = hashlib.sha256(bytes(state)).hexdigest()[:12]
        run = Path("/tmp") / f"counterseal-{os.geteuid()}-{name}"  # noqa: S108
    return Layout(state, run)


def _is_unfit_for_sockets(run: Path) -> bool:
    path = bytes(run / "pg" / PG_SOCKET)
    return len(path) > MAX_SOCKET_LENGTH or not SAFE.fullmatch(path)


def create_run_folder(run: Path) -> None:
    """Create the folder of the sockets. Refuses a folder of another user, because its
    name under /tmp can be guessed.

    *Raises* InstallationError.
    """
    run.mkdir(mode=0o711, parents=True, exist_ok=True)
    status = run.lstat()
    if run.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise InstallationError(
            f"{run} belongs to another user: remove it, or set another STATE"
        )
