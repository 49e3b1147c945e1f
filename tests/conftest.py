"""What every test can ask for. Which servers it runs against: tests/servers.py."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpcore2
import hypothesis
import pytest
import redis
import structlog
from django.conf import settings
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from agents.models import Agent
from policies.models import Person, PolicyVersion
from tests import (
    emptying,
    factories,
    guards,
    schema_template,
    servers,
    stack,
    worlds,
)

ROOT = Path(__file__).resolve().parent.parent
LONG = [ROOT / "tests/journeys/desk", ROOT / "tests/gallery"]
SLOW = [ROOT / f"tests/{name}" for name in ("mutants", "races", "security")]


def pytest_configure(config: pytest.Config) -> None:
    """Hashing for seconds, and finding files by their hashed names, prove nothing. For
    the whole run: a browser's late request would meet what a fixture had put back.

    `make test COVERAGE=1` counts the branches of templates too.
    """
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        }
    }
    # Who looks at connections tells those of the tests from those of the product.
    databases: Any = settings.DATABASES
    databases["default"]["OPTIONS"]["application_name"] = "counterseal tests"
    # Each client would read the certificates of the system again: 25 ms of the
    # processor, mostly for one call of a server without TLS.
    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)
    # A busy machine makes an example slow, and proves nothing by it.
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")
    # A logger that is kept would not see what a test captures.
    structlog.configure(cache_logger_on_first_use=False)
    if config.getoption("cov_source", None):
        engines: Any = settings.TEMPLATES
        engines[0]["OPTIONS"]["debug"] = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: no process is left alone with it at the end.
    The tests of the first folders stay side by side: their servers start once. A full
    number takes as long as it takes."""
    items.sort(key=_place)
    if guards.proving():
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)


def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Before the fixtures of a failed test roll back."""
    if call.excinfo is not None:
        emptying.close_interrupted_connection()


def _place(item: pytest.Item) -> int:
    parents = item.path.parents
    folder = next((at for at, one in enumerate(LONG) if one in parents), None)
    if folder is not None:
        return folder
    slow = any(item.get_closest_marker(name) for name in ("servers", "browser"))
    return len(LONG) + (0 if slow or item.path.parent in SLOW else 1)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Before pytest-django makes the database: give it a template. On a given server,
    whose programs are not at hand, the tests' database is migrated instead."""
    if servers.private is not None:
        url = settings.COUNTERSEAL.database_url
        schema_template.create_template(url, servers.private)
        databases: Any = settings.DATABASES
        databases["default"]["TEST"]["TEMPLATE"] = schema_template.NAME


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """After pytest-django made the database: remember what migrations put there."""
    with django_db_blocker.unblock():
        emptying.remember()
    patch = pytest.MonkeyPatch()
    patch.setattr(TransactionTestCase, "_fixture_teardown", emptying.teardown)
    yield
    patch.undo()
    with django_db_blocker.unblock():
        emptying.part()


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """`shared("vectors/rfc8785_jcs.json")`: a file beside the project, or a skip that
    names it; on CI a missing file is a failure."""
    return guards.shared_file


@pytest.fixture
def proof_n() -> Callable[..., int]:
    """`proof_n(small=20, full=1000)`: `make prove` runs the full number."""
    return guards.proof_n


@pytest.fixture
def record_proof(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`record_proof("T2", "1,000 x 32: 1,000 single winners")`: a line of
    docs/proof.md."""
    return guards.Recorder(request).record


@pytest.fixture(scope="session")
def _stack(django_db_setup: None) -> Iterator[stack.Stack]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    made = stack.make(Path(os.environ["STATE"]) / f"live-{worker}")
    yield made
    made.stop()


@pytest.fixture
def live(transactional_db: None, _stack: stack.Stack) -> Iterator[stack.Stack]:
    """The whole product running for real; `live.start_worker()` adds a worker."""
    emptying.begin_epoch()
    _stack.start_web()
    yield _stack
    _stack.kill_worker()
    _stack.empty_broker()
    _stack.disarm()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """The system's Chromium, also as root and with a small /dev/shm."""
    # Playwright's sync interface runs an event loop, which Django takes for async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    return {
        "executable_path": guards.chromium(),
        "args": ["--no-sandbox", "--disable-dev-shm-usage"],
    }


@dataclass(frozen=True)
class Gate:
    """A gate ready to be asked: the cast, an active policy and one agent."""

    people: dict[str, Person]
    policy: PolicyVersion
    agent: Agent

    def __getattr__(self, name: str) -> Person:
        try:
            found: Person = self.__dict__["people"][name]
        except KeyError:
            raise AttributeError(name) from None
        return found


@pytest.fixture
def empty_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside, where nothing has happened yet; for processes of a test too."""
    empty_outside(tmp_path, monkeypatch)


def empty_outside(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """A ledger in this folder, until the patch is undone."""
    patch.setenv(worlds.LEDGER, str(folder / "ledger.sqlite"))
    worlds.WORLD.clear()


@pytest.fixture
def gate(db: None, empty_world: None) -> Gate:
    """The tests' policy in force, and an empty ledger as the outside world."""
    return make_gate()


def make_gate() -> Gate:
    """The cast, the tests' policy in force, and one agent."""
    people = factories.cast()
    policy = factories.own_policy(people)
    return Gate(people, policy, factories.agent(people["owen"]))


@pytest.fixture
def networks(settings: Any) -> Callable[..., None]:
    """`networks("127.0.0.1/32")`: the private networks that webhooks and letters may
    reach, each by its own setting; none yet."""

    def allow(*texts: str) -> None:
        found = [ip_network(text) for text in texts]
        both = {"webhook_networks": found, "callback_networks": found}
        changed = settings.COUNTERSEAL.model_copy(update=both)
        settings.COUNTERSEAL = changed

    allow()
    return allow


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    """The real broker, empty before and after."""
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as client:
        client.flushdb()
        yield client
        client.flushdb()
