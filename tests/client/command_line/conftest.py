from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reviews.people import tokens
from tests import conftest
from tests.client.gate import KEY, LoopbackGate
from tests.client.test_tools import Desk
from tests.stack import Stack

from .shell import Shell


@pytest.fixture
def desk(live: Stack, empty_world: None) -> Iterator[Desk]:
    desk = Desk(live, conftest.make_gate())
    with desk.gate:
        yield desk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def agent_shell(desk: Desk, home: Path) -> Shell:
    """The shell of the agent at the real gate."""
    return Shell(home, {"HOLDPOINT_URL": desk.url, "HOLDPOINT_KEY": desk.key})


@pytest.fixture
def rita_shell(desk: Desk, home: Path) -> Shell:
    """The shell of the reviewer at the real gate."""
    token = tokens.create_token(person=desk.people.rita, name="terminal")
    return Shell(home, {"HOLDPOINT_URL": desk.url, "HOLDPOINT_TOKEN": token})


@pytest.fixture
def loopback_shell(gate: LoopbackGate, home: Path) -> Shell:
    """The shell of an agent at a small gate that answers as it is told."""
    return Shell(home, {"HOLDPOINT_URL": gate.url, "HOLDPOINT_KEY": KEY})
