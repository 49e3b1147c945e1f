from __future__ import annotations

import shutil
import socket
from typing import NamedTuple

import pytest
from django.conf import settings

from hitl.local import preflight
from hitl.local.layout import InstallationError, Layout


def test_a_second_one_is_told_who_is_first(here: Layout) -> None:
    with (
        preflight.lock_state(here),
        pytest.raises(InstallationError, match=r"already runs in .*\(process \d+\)"),
        preflight.lock_state(here),
    ):
        pass


def test_a_clean_end_and_a_kill_are_told_apart(here: Layout) -> None:
    with preflight.lock_state(here) as unclean:
        assert not unclean
    with preflight.lock_state(here) as unclean:
        assert not unclean
    with pytest.raises(KeyboardInterrupt), preflight.lock_state(here):
        raise KeyboardInterrupt
    with preflight.lock_state(here) as unclean:
        assert unclean


def test_a_full_disk_is_said(here: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(5_000_000))
    with pytest.raises(InstallationError, match=r"the disk is full: .* has 5 MB left"):
        preflight.check_disk(here)


def test_a_taken_port_is_said_with_another(here: Layout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            InstallationError, match=f"PORT {port} is in use .* PORT={port + 1}"
        ):
            preflight.check_port("127.0.0.1", port, "PORT", patient=False)
    preflight.check_port("127.0.0.1", port, "PORT", patient=False)


def test_a_database_that_is_not_there_is_said_without_the_password() -> None:
    with pytest.raises(
        InstallationError, match=r"^DATABASE_URL: cannot connect .*Connection refused"
    ) as e:
        preflight.check_database("postgresql://u:hunter2@127.0.0.1:1/x")
    assert "hunter2" not in str(e.value)
    assert "\n" not in str(e.value)


def test_a_broker_that_is_not_there_is_said_without_the_password() -> None:
    with pytest.raises(
        InstallationError, match=r"^REDIS_URL: no answer from 127.0.0.1:1"
    ) as e:
        preflight.check_broker("redis://:hunter2@127.0.0.1:1/0")
    assert "hunter2" not in str(e.value)


def test_the_servers_of_this_run_pass() -> None:
    preflight.check_database(settings.COUNTERSEAL.database_url)
    preflight.check_broker(settings.COUNTERSEAL.redis_url)
