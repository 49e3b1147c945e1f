"""A real pgbouncer in front of the database: it may give each client a session, and not
each transaction another one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from pytest_django import Settings

from hitl import checks, connections
from hitl.local import postgres
from hitl.postgresql import pooling
from hitl.postgresql.base import DatabaseWrapper
from tests.guards import lacking
from tests.stack import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.servers]
CONFIGURATION = """
[databases]
* = host={HOST} port={PORT} user={USER} password={PASSWORD}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = {mode}
unix_socket_dir =
"""
StartPooler = Callable[[str], str]


@pytest.fixture
def start_pooler() -> Iterator[StartPooler]:
    """Starts one in the given mode and returns the database's address behind it."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        lacking("pgbouncer")
    known = connection.settings_dict
    with ExitStack() as stack:

        def start(mode: str) -> str:
            port = find_free_port()
            url = f"postgresql://{known['USER']}@127.0.0.1:{port}/{known['NAME']}"
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            file = folder / "pgbouncer.ini"
            values = {
                **known,
                "PORT": known["PORT"] or 5432,
                "port": port,
                "mode": mode,
            }
            file.write_text(CONFIGURATION.format(**values))
            # It refuses to run as root, to whom the server's socket belongs.
            command = [*postgres.UNSHARE, program, "-q", str(file)]
            process = subprocess.Popen(command)
            stack.callback(process.wait)
            stack.callback(process.kill)
            wait_until(lambda: answers(url), 20)
            return url

        yield start


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def test_sessions_pass_with_all_their_settings(start_pooler: StartPooler) -> None:
    url = start_pooler("session")
    assert not pooling.changes_sessions(url, 5)
    config = connections.build_database_config(url, application_name="web")
    pooled = DatabaseWrapper({**connection.settings_dict, **config}, alias="pooled")
    with pooled.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("5s",)
    pooled.close()


def test_a_process_does_not_start_behind_one_that_pools_transactions(
    start_pooler: StartPooler, settings: Settings
) -> None:
    changed = {"deployment": "production", "database_url": start_pooler("transaction")}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    with pytest.raises(ImproperlyConfigured, match="set pool_mode = session"):
        checks.run_startup_checks()


def test_a_database_that_does_not_answer_stops_no_process(settings: Settings) -> None:
    changed = {"deployment": "production", "database_url": "postgresql://127.0.0.1:1/x"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    checks.run_startup_checks()
