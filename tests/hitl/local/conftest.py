from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl.local import keys
from hitl.local.layout import Layout, layout, make_run


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Layout]:
    """A state folder of its own, with keys and a folder for sockets."""
    made = layout(tmp_path / "state")
    keys.ensure(made.keys)
    make_run(made.run)
    yield made
    shutil.rmtree(made.run, ignore_errors=True)


@pytest.fixture
def password(here: Layout) -> str:
    return keys.read(here.keys, "database_password")
