"""Processes that start while the database is away compare their keys when it answers,
and end when one is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.backends.signals import connection_created

from hitl import checks
from hitl.local import installation, keys
from hitl.local.layout import PG_SOCKET, Layout
from hitl.local.process import Child
from journal import known_keys
from journal.models import KnownKey
from tests import stack
from tests.guards import lacking
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]
WRONG = "DATA_KEY: this installation uses the key "


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the socket of the database will be: short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="cs-") as name:
        yield Path(name)


def find_socket() -> Path:
    query = parse_qs(urlsplit(settings.COUNTERSEAL.database_url).query)
    socket = Path(query.get("host", [""])[0], PG_SOCKET)
    if not socket.is_socket():
        lacking("a database that is reached by a socket")
    return socket


@pytest.fixture
def away(tmp_path: Path, folder: Path) -> Stack:
    """Processes with another DATA_KEY, whose database does not answer yet."""
    made = stack.make(tmp_path / "state")
    name = quote(str(connection.settings_dict["NAME"]))
    parts = urlsplit(settings.COUNTERSEAL.database_url)
    url = parts._replace(path=f"/{name}", query=f"host={quote(str(folder), safe='')}")
    made.extra |= {"DATABASE_URL": url.geturl(), "DATA_KEY": keys.generate_key()}
    made.collect()
    return made


def has_ended(child: Child) -> bool:
    return child.exit_code() is not None


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/livez", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


def test_a_wrong_key_ends_who_started_before_the_database(
    away: Stack, folder: Path, tmp_path: Path
) -> None:
    socket = find_socket()
    known_keys.check_keys()
    rows = list(KnownKey.objects.values_list())
    here = Layout(away.state, away.state / "run")
    web = Child(installation.build_web_program(here, away.environ))
    worker = Child(away._worker(beat=True, processes=1))
    try:
        wait_until(lambda: answers(away.base_url), 30, lambda: away.log("web"))
        wait_until(lambda: " ready." in away.log("worker"), 30)
        assert WRONG not in away.log("web") + away.log("worker")
        (folder / PG_SOCKET).symlink_to(socket)
        for child, name in ((web, "web"), (worker, "worker")):
            wait_until(partial(has_ended, child), 30, partial(away.log, name))
            assert WRONG in away.log(name)
    finally:
        web.kill()
        worker.kill()
        away.empty_broker()
    assert list(KnownKey.objects.values_list()) == rows


def test_a_command_says_the_wrong_key_on_its_first_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database was away for the command's own check."""
    known_keys.check_keys()
    changed = {"tag_key": bytes(32)}
    present = settings.COUNTERSEAL
    monkeypatch.setattr(settings, "COUNTERSEAL", present.model_copy(update=changed))
    late = checks._LateComparison(serving_pid=None)
    connection_created.connect(late.compare)
    try:
        for _ in range(2):  # nor on the next one
            connection.close()
            with pytest.raises(ImproperlyConfigured, match="TAG_KEY"):
                KnownKey.objects.count()
        monkeypatch.setattr(settings, "COUNTERSEAL", present)
        assert KnownKey.objects.count()
        assert late.done
    finally:
        connection_created.disconnect(late.compare)
