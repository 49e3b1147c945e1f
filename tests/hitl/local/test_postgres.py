"""A private PostgreSQL for real: started, stopped, killed, damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from hitl.local import postgres, process
from hitl.local.layout import InstallationError, Layout
from hitl.local.process import Child
from tests.guards import ROOT

pytestmark = pytest.mark.servers


@contextmanager
def running(here: Layout, password: str) -> Iterator[Child]:
    child = postgres.start_server(here, password, fast=True)
    try:
        yield child
    finally:
        child.stop(within=5)


def ask(here: Layout, password: str, query: str) -> object:
    url = here.database_url(password)
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchone() if cursor.description else None


def test_a_second_start_keeps_the_data(here: Layout, password: str) -> None:
    with running(here, password):
        ask(here, password, "CREATE TABLE kept AS SELECT 7 AS n")
    with running(here, password):
        assert ask(here, password, "SELECT n FROM kept") == (7,)


def test_what_was_committed_survives_sigkill(here: Layout, password: str) -> None:
    with running(here, password) as child:
        ask(here, password, "CREATE TABLE kept AS SELECT 7 AS n")
        os.kill(child.pid, signal.SIGKILL)
        child.process.wait()
        with running(here, password):
            assert ask(here, password, "SELECT n FROM kept") == (7,)


def test_a_wrong_password_does_not_get_in(here: Layout, password: str) -> None:
    with (
        running(here, password),
        pytest.raises(psycopg.OperationalError, match=r"password"),
    ):
        ask(here, "wrong", "SELECT 1")


def test_nothing_listens_on_the_network(here: Layout, password: str) -> None:
    with running(here, password):
        assert ask(here, password, "SHOW listen_addresses") == ("",)
        assert here.postgres_socket.stat().st_mode & 0o077 == 0


def test_a_predecessor_that_is_still_stopping_is_waited_for(
    here: Layout, password: str
) -> None:
    with running(here, password) as first:
        first.ask_to_stop()
        with running(here, password) as second:
            assert ask(here, password, "SELECT 1") == (1,)
            assert (
                process.wait_until_gone(first.pid, within=0) or first.exit_code() == 0
            )
            assert second.exit_code() is None


def test_a_stale_pid_file_does_not_matter(here: Layout, password: str) -> None:
    with running(here, password):
        pass
    # A process that lives and is not PostgreSQL.
    (here.postgres_data / "postmaster.pid").write_text(f"{os.getpid()}\n")
    with running(here, password):
        assert ask(here, password, "SELECT 1") == (1,)


def test_a_making_that_was_cut_short_is_made_again(here: Layout, password: str) -> None:
    draft = here.postgres_data.with_name("postgres.new")
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18\n")
    with running(here, password):
        assert ask(here, password, "SELECT 1") == (1,)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("", "is not a complete database folder"),
        ("16\n", "was created by PostgreSQL 16"),
    ],
)
def test_a_folder_that_is_not_ours_is_left_alone(
    here: Layout, password: str, version: str, said: str
) -> None:
    (here.postgres_data / "global").mkdir(parents=True)
    (here.postgres_data / "PG_VERSION").write_text(version)
    if version:
        (here.postgres_data / "global" / "pg_control").touch()
    with pytest.raises(InstallationError, match=f"{said}.*move it away"):
        postgres.start_server(here, password)
    assert (here.postgres_data / "PG_VERSION").read_text() == version


def test_a_damaged_folder_says_what_postgresql_says(
    here: Layout, password: str
) -> None:
    with running(here, password):
        pass
    (here.postgres_data / "global" / "pg_control").write_bytes(b"")
    with pytest.raises(
        InstallationError, match=r"PostgreSQL did not start: .*pg_control"
    ):
        postgres.start_server(here, password)


def test_a_platform_without_binaries_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, here: Layout, password: str
) -> None:
    monkeypatch.setattr(postgres, "INSTALL", Path("nowhere"))
    with pytest.raises(
        InstallationError, match=r"no private PostgreSQL for .* set DATABASE_URL"
    ):
        postgres.start_server(here, password)


def test_a_full_disk_is_said() -> None:
    output = "FATAL: could not write: No space left on device"
    assert postgres._describe_failure(output).startswith("the disk is full")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_without_namespaces_root_runs_it_as_nobody(
    monkeypatch: pytest.MonkeyPatch, here: Layout, password: str
) -> None:
    monkeypatch.setattr(postgres, "_has_user_namespaces", lambda: False)
    try:
        with running(here, password) as child:
            ask(here, password, "CREATE TABLE kept AS SELECT 7 AS n")
            assert Path(f"/proc/{child.pid}").stat().st_uid == 65534
        with running(here, password):
            assert ask(here, password, "SELECT n FROM kept") == (7,)
    finally:
        shutil.rmtree(here.postgres_data.readlink().parent)


# Somebody who is not root, as far as PostgreSQL can tell.
AS_USER = """
import os, sys, pathlib
assert os.geteuid() == 1000
from hitl.local import keys, layout, postgres
here = layout.build_layout(pathlib.Path(sys.argv[1]))
layout.create_run_folder(here.run)
keys.ensure_keys(here.keys)
child = postgres.start_server(here, "secret", fast=True)
assert here.run == here.state / "run", here
assert postgres.detect_host(here).prefix == ()
child.stop(within=5)
"""


@pytest.mark.skipif(
    not postgres._has_user_namespaces(), reason="no user namespaces here"
)
def test_a_user_runs_it_without_a_namespace(tmp_path: Path) -> None:
    command = [*postgres.UNSHARE, sys.executable, "-c", AS_USER, str(tmp_path / "s")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
