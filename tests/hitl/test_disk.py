"""A full disk is said at /readyz."""

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

from agents import keys as agent_keys
from counterseal_client import File
from counterseal_client import Gate as AgentClient
from hitl import disk
from hitl.health import probes
from hitl.local import keys, layout, postgres
from journal import clock
from reviews.models import Execution
from tests.conftest import Gate
from tests.guards import lacking
from tests.reviews.executions.attempts import deployment
from tests.stack import Stack
from tests.stack import make as make_stack


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "known", probes.HealthState())
    # It would close the connection of the test's transaction.
    monkeypatch.setattr(probes, "close_old_connections", lambda: None)


def probe() -> str:
    """What this process knows of its disks after it has checked them."""
    probes.known.rounds = 0
    probes.update_health()
    return probes.known.disk


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
        write_for_ever(file, bytes(64 * 1024))
    return file


def write_for_ever(file: Path, part: bytes) -> None:
    with file.open("ab", buffering=0) as out:
        while True:
            out.write(part)


@pytest.mark.django_db
def test_the_process_is_degraded_while_the_disk_of_state_is_full(
    client: Client, settings: Settings, small: Path
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"state": small})
    assert probe() == "ok"
    filling = fill(small)
    assert probe() == "the disk of STATE is full"
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["disk"] == "the disk of STATE is full"
    filling.unlink()
    assert probe() == "ok"
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
    assert disk.probe_state_folder() == "STATE cannot be written"


@pytest.mark.servers
def test_an_agent_waits_until_the_disk_of_state_has_room(
    live: Stack, gate: Gate, small: Path
) -> None:
    """Nothing but what hands out an effect writes there; the client asks again."""
    key = agent_keys.issue_key(agent=gate.agent, by=gate.owen)
    execution, _ = deployment(gate)
    own = make_stack(small)
    own.start_web()
    filling, pauses = fill(small), list[float]()

    def make_room(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            filling.unlink()
            Execution.objects.update(due_at=clock.now())  # so long it has slept

    try:
        with AgentClient(own.base_url, key, sleep=make_room) as client:
            with pytest.raises(OSError, match="No space left"):
                write_for_ever(small / "epoch", b"\n")  # where the note has room left
            shown = [File(b'{"rows": 2}', name="plan.json")]
            proposal = client.propose("t-full", "deploy", {"ref": "v2"}, evidence=shown)
            client.revise(proposal.id, {"ref": "v3"})
            client.checkpoint("t-full")
            client.withdraw(proposal.id)
            grant = client.get(execution.proposal_id).grant
            assert grant
            assert not pauses
            claim = client.redeem(grant.token)
            execution.refresh_from_db()
            assert execution.attempts == 1, "what a disk refuses is no attempt"
            assert pauses[0] == 5
            assert len(pauses) == 2
            fill(small)
            client.report(claim, "failed", code="declined")
            assert len(pauses) == 2
    finally:
        own.kill_web()
