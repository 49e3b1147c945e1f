"""A host that loses its power says goodbye to nobody: what it had locked must be free
again in seconds, and who waits for a server that is gone must notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from chaos.network import Host, Network, build_network
from hitl import connections
from hitl.local import keys, layout, postgres
from hitl.local.process import Program
from tests.guards import lacking
from tests.stack import wait_until

pytestmark = pytest.mark.servers

# Seconds of silence, and milliseconds when something of ours was not acknowledged.
QUICK = {
    "tcp_keepalives_idle": 1,
    "tcp_keepalives_interval": 1,
    "tcp_user_timeout": 3000,
}
FREE_S = 20.0  # 4 s, and what a busy machine adds
HOLD = """
import sys, time, psycopg
held = psycopg.connect(sys.argv[1])
held.execute("SELECT * FROM t FOR UPDATE")
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def network() -> Iterator[Network]:
    with ExitStack() as stack:
        made = build_network(1, stack)
        if not made.real:
            lacking("the right to make network namespaces (root, iproute2, nsenter)")
        yield made


@pytest.fixture
def server(network: Network, tmp_path: Path) -> Iterator[str]:
    """The address of a PostgreSQL on the data host."""
    at, hba = network.data, tmp_path / "hba.conf"
    here = layout.build_layout(tmp_path)
    layout.create_run_folder(here.run)
    keys.ensure_keys(here.keys)
    password = keys.read_key(here.keys, "database_password")
    hba.write_text(f"local all all trust\nhost all all {network.range} trust\n")

    def there(program: Program) -> Program:
        settings = f"-c listen_addresses={at.address} -c hba_file={hba}".split()
        return replace(program, argv=[*at.prefix, *program.argv, *settings])

    child = postgres.start_server(here, password, fast=True, adapt=there)
    try:
        yield f"postgresql://counterseal@{at.address}/counterseal"
    finally:
        child.stop(within=20)
        shutil.rmtree(here.run, ignore_errors=True)


def _connect(url: str, **quicker: int) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(_conninfo(url, **quicker), autocommit=True)


def _conninfo(url: str, **quicker: int) -> str:
    """As the product's processes connect, but for what is quicker, and in one step."""
    found = connections.build_database_config(url, application_name="test")
    options = {**found["OPTIONS"]}
    wanted = {**options.pop("session_settings"), **quicker}
    switches = [f"-c {name}={value}" for name, value in wanted.items()]
    options["options"] = " ".join(switches)
    return psycopg.conninfo.make_conninfo(url, **options)


def _holder(host: Host, conninfo: str) -> subprocess.Popen[str]:
    """Somebody on that host who holds the row and falls silent."""
    command = [*host.prefix, sys.executable, "-c", HOLD, conninfo]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_vanished_host_s_locks_are_free_in_seconds(
    network: Network, server: str
) -> None:
    host = network.apps[0]
    with _connect(server) as ours:
        ours.execute("CREATE TABLE t AS SELECT 1 AS x")
        holder = _holder(host, _conninfo(server, **QUICK))
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            network.cut(host.name)
            began = time.monotonic()
            ours.execute(f"SET lock_timeout = '{FREE_S:g}s'")
            ours.execute("SELECT * FROM t FOR UPDATE")
            assert time.monotonic() - began > 1.0  # it was locked until then
        finally:
            holder.kill()
            holder.communicate()


def test_the_server_watches_us_as_we_watch_it(server: str) -> None:
    """With the figures of the product, on a connection as its processes make it."""
    with _connect(server) as ours:
        for name, value in connections.SERVER_OPTIONS.items():
            found = ours.execute(
                "SELECT setting::int FROM pg_settings WHERE name = %s", [name]
            ).fetchone()
            assert found == (value,), name
        given = ours.info.get_parameters()
    assert {
        name: int(given[name]) for name in connections.CLIENT_OPTIONS
    } == connections.CLIENT_OPTIONS


def test_the_rest_of_a_transaction_is_not_waited_for_without_end(server: str) -> None:
    """A process that is stuck between two statements loses its transaction."""
    with _connect(server, idle_in_transaction_session_timeout=200) as stuck:
        stuck.autocommit = False
        stuck.execute("SELECT 1")
        with _connect(server) as watch:
            wait_until(lambda: not _lives(watch, stuck), FREE_S)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            stuck.execute("SELECT 1")


def _lives(
    watch: psycopg.Connection[tuple[object, ...]],
    other: psycopg.Connection[tuple[object, ...]],
) -> bool:
    """Whether the server still has a process for that connection."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    return bool(watch.execute(asked, [other.info.backend_pid]).fetchone())
