"""What every test can ask for. Which servers it runs against: tests/servers.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker, Settings

from tests import emptying, guards

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def quick(settings: Settings) -> None:
    """Hashing for seconds, and finding files by their hashed names, prove nothing."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        }
    }


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
    return guards.Recorder(request.config).record
