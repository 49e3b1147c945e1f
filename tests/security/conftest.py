"""A world is built once for the tests of a file, which takes seconds. Each of them has
a savepoint within its transaction, and knows nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from tests import conftest, worlds
from tests.security import world as everyone
from tests.security.world import World


@pytest.fixture(scope="module")
def _built(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch, _around(django_db_blocker):
        with django_db_blocker.unblock():
            conftest.empty_outside(folder, patch)
            built = everyone.build(conftest.make_gate())
        yield built


@contextmanager
def _around(blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction that ends with nothing kept, open while tests have theirs in it."""
    around = transaction.atomic()
    # As Django's own TestCase says it: or no operation would begin within it.
    around._from_testcase = True  # type: ignore[attr-defined]
    with blocker.unblock():
        around.__enter__()
    try:
        yield
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            around.__exit__(None, None, None)


@pytest.fixture
def world(_built: World, db: None) -> Iterator[World]:
    """One of everything, and a client for everyone, as when it was built. A test that
    has it takes no `gate`: it has one."""
    outside = dict(worlds.WORLD)
    yield everyone.again(_built)
    worlds.WORLD.clear()
    worlds.WORLD |= outside
