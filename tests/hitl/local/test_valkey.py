from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from hitl.local import valkey
from hitl.local.layout import InstallationError, Layout
from hitl.local.process import Child

pytestmark = pytest.mark.servers


@contextmanager
def running(here: Layout) -> Iterator[tuple[Child, redis.Redis]]:
    child = valkey.start_server(here)
    client = redis.Redis.from_url(here.redis_url)
    try:
        yield child, client
    finally:
        client.close()
        child.stop(within=5)


def test_what_it_had_taken_survives_a_restart(here: Layout) -> None:
    with running(here) as (_, client):
        client.rpush("celery", "message")
    with running(here) as (_, client):
        assert client.lrange("celery", 0, -1) == [b"message"]


def test_what_it_had_taken_survives_sigkill(here: Layout) -> None:
    with running(here) as (child, client):
        client.rpush("celery", *range(500))
        os.kill(child.pid, signal.SIGKILL)
        child.process.wait()
        with running(here) as (_, again):
            assert again.llen("celery") == 500


def test_a_full_broker_refuses_and_forgets_nothing(here: Layout) -> None:
    with running(here) as (_, client):
        assert client.config_get("maxmemory-policy") == {
            "maxmemory-policy": "noeviction"
        }
        assert here.valkey_socket.stat().st_mode & 0o077 == 0


def test_a_platform_without_a_binary_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(
        InstallationError, match=r"no private Valkey for .*riscv64.* set REDIS_URL"
    ):
        valkey.locate_binary()
