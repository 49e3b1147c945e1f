from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl.local import keys
from hitl.local.layout import Layout, build_layout, create_run_folder


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Layout]:
    """A state folder of its own, with keys and a folder for sockets."""
    made = build_layout(tmp_path / "state")
    keys.ensure_keys(made.keys)
    create_run_folder(made.run)
    yield made
    shutil.rmtree(made.run, ignore_errors=True)


@pytest.fixture
def password(here: Layout) -> str:
    return keys.read_key(here.keys, "database_password")
