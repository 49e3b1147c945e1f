"""Checks before anything is started. Each failure is one line that says what to do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import redis
from django.conf import settings

from hitl.variable_types import is_loopback

from .layout import InstallationError, Layout

NEEDED_MB = 300
PORT_PATIENCE_S = 5.0


@contextlib.contextmanager
def lock_state(here: Layout) -> Iterator[bool]:
    """Lock this STATE. Yields whether the previous installation was killed and may
    still be stopping.

    *Raises* InstallationError while another process holds the lock.
    """
    handle = os.open(here.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InstallationError(
                f"Counterseal already runs in {here.state} (process "
                f"{_read_pid(handle)}): stop it, or set another STATE and PORT"
            ) from None
        unclean = bool(_read_pid(handle))
        _write_pid(handle, str(os.getpid()))
        yield unclean
        _write_pid(handle, "")
    finally:
        os.close(handle)


def is_locked(here: Layout) -> bool:
    """Whether an installation runs in this STATE."""
    try:
        handle = os.open(here.lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def check_solo(host: str, *, demo: bool) -> None:
    """*Raises* InstallationError where solo mode would be for other people, too."""
    if not settings.COUNTERSEAL.solo:
        return
    if demo:
        raise InstallationError(
            "--demo has people of its own, and --solo is for one person: leave one out"
        )
    if not is_loopback(host):
        raise InstallationError(
            f"HOST: {host} can be reached from other machines, and --solo is for this"
            " one only: unset HOST, or leave --solo out"
        )


def check_disk(here: Layout) -> None:
    """*Raises* InstallationError when the disk of STATE is nearly full."""
    free = shutil.disk_usage(here.state).free // 1_000_000
    if free < NEEDED_MB:
        raise InstallationError(
            f"the disk is full: {here.state} has {free} MB left and needs {NEEDED_MB}: "
            "free some space, or set STATE to a folder on another disk"
        )


def check_port(host: str, port: int, name: str, *, patient: bool) -> None:
    """*Raises* InstallationError when another program listens there. `patient`: wait
    first, because our own previous processes may be about to leave it."""
    end = time.monotonic() + (PORT_PATIENCE_S if patient else 0)
    while not _is_port_free(host, port):
        if time.monotonic() >= end:
            raise InstallationError(
                f"{name} {port} is in use on {host}: stop the program that listens "
                f"there, or choose another with {name}={port + 1}"
            )
        time.sleep(0.1)


def check_database(url: str) -> None:
    """*Raises* InstallationError unless a PostgreSQL 15 or newer accepts us."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        raise InstallationError(
            f"DATABASE_URL: cannot connect ({_first_line(error)}): start that server "
            "and check name and password, or unset DATABASE_URL for a private one"
        ) from None
    if version < 150000:
        raise InstallationError(
            f"DATABASE_URL: this is PostgreSQL {version // 10000}: use 15 or newer"
        )


def check_broker(url: str) -> None:
    """*Raises* InstallationError unless a Redis or Valkey answers."""
    with redis.Redis.from_url(
        url, socket_connect_timeout=5, socket_timeout=5
    ) as client:
        try:
            client.ping()
        except redis.RedisError as error:
            raise InstallationError(
                f"REDIS_URL: no answer from {_strip_password(url)} "
                f"({type(error).__name__}): start that server, or unset REDIS_URL for "
                "a private one"
            ) from None


def _is_port_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _first_line(error: Exception) -> str:
    # The driver's text contains host and port but never the password.
    return str(error).strip().split("\n", 1)[0]


def _strip_password(url: str) -> str:
    parts = urlsplit(url)
    where = parts.hostname or parts.path
    return f"{where}:{parts.port}" if parts.port else where


def _read_pid(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 32).decode().strip()


def _write_pid(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, text.encode())
