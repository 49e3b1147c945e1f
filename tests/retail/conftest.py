"""The retail run's own stack: the product with the run's settings, beside `live`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from pytest_django import Settings

from hitl.environment import LOOPBACK
from tests import stack
from tests.retail.run import ENVIRON
from tests.retail.tasks import DATA


@pytest.fixture
def data(shared: Callable[[str], Path]) -> Path:
    """The folder of the store's records and tasks."""
    return shared(DATA)


@pytest.fixture
def loopback(settings: Settings) -> None:
    """The signed calls of this process may reach the store's service."""
    networks = [ip_network(f"{LOOPBACK}/32")]
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"webhook_networks": networks}
    )


@pytest.fixture(scope="session")
def _retail_stack(django_db_setup: None) -> Iterator[stack.Stack]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    made = stack.make(Path(os.environ["STATE"]) / f"retail-{worker}")
    made.extra = dict(ENVIRON)
    yield made
    made.stop()


@pytest.fixture
def retail(
    data: Path, transactional_db: None, _retail_stack: stack.Stack
) -> Iterator[stack.Stack]:
    """The whole product running for real; the test starts the worker."""
    _retail_stack.start_web()
    yield _retail_stack
    _retail_stack.kill_worker()
    _retail_stack.empty_broker()


@pytest.fixture
def say(
    record_proof: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> Callable[[str], None]:
    """Print the counts, and keep them for docs/proof.md under the run's name: each can
    be proved again alone."""

    def both(line: str) -> None:
        name, _, counts = line.partition(": ")
        record_proof(f"retail, {name}", counts)
        with capsys.disabled():
            print(f"\nretail, {line}")  # noqa: T201 - the counts are the point

    return both
