"""A full disk is said at /readyz: nothing could be proposed or decided meanwhile."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from django.test import Client
from pytest_django import Settings

from hitl import disk
from hitl.local import keys, layout, postgres
from tests.guards import lacking


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_last_state", disk._CachedState())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 96 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        lacking("the right to mount a tmpfs")
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
        yield folder


def fill(folder: Path) -> Path:
    """Take all that is left of it."""
    file = folder / "filling"
    with pytest.raises(OSError, match="No space left"):
        write_for_ever(file)
    return file


def write_for_ever(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(64 * 1024))


@pytest.mark.django_db
def test_readyz_is_not_ok_while_the_disk_of_state_is_full(
    client: Client, settings: Settings, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"state": small})
    settings.COUNTERSEAL = changed
    monkeypatch.setattr(disk, "CACHED_S", 0)
    assert client.get("/readyz").json()["disk"] == "ok"
    filling = fill(small)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["disk"] == "the disk of STATE is full"
    assert answer.json()["status"] == "unavailable"
    filling.unlink()
    assert client.get("/readyz").status_code == 200
    assert not list(small.glob(".probe-*"))


@pytest.mark.servers
def test_the_probe_notices_that_the_database_cannot_write(
    small: Path, tmp_path: Path
) -> None:
    """A PostgreSQL on a disk that fills up."""
    here = layout.build_layout(small / "gate")
    here.state.mkdir()
    layout.create_run_folder(here.run)
    keys.ensure_keys(here.keys)
    password = keys.read_key(here.keys, "database_password")
    child = postgres.start_server(here, password, fast=True)
    try:
        with psycopg.connect(
            here.database_url(password).replace("/counterseal?", "/postgres?"),
            autocommit=True,
        ) as connection:
            connection.execute(disk._SORT)
            fill(small)
            with pytest.raises(psycopg.errors.DiskFull):
                connection.execute(disk._SORT)
    finally:
        child.kill()
        shutil.rmtree(here.run, ignore_errors=True)


@pytest.mark.django_db
def test_readyz_says_that_the_database_has_no_room(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    raising = "DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$"
    monkeypatch.setattr(disk, "_SORT", raising)
    assert disk._probe_database() == "the database's disk is full"


def test_a_state_that_cannot_be_written_is_said(
    settings: Settings, tmp_path: Path
) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"state": tmp_path / "nowhere"})
    settings.COUNTERSEAL = changed
    assert disk._probe_state_folder() == "STATE cannot be written"


@pytest.mark.django_db
def test_an_answer_holds_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter(["ok"])
    monkeypatch.setattr(disk, "probe_disk", lambda: next(asked))
    assert [disk.describe_disk() for _ in range(100)] == ["ok"] * 100
