from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from counterseal_client.claude_code.gate_tools import ALL_GATE_TOOLS, POLICY_FILE
from reviews.people import tokens
from tests import conftest, factories
from tests.client.command_line.shell import Shell
from tests.client.gate import KEY, LoopbackGate
from tests.client.test_tools import Desk
from tests.stack import Stack


@pytest.fixture(scope="session", autouse=True)
def commands(fork_server: None) -> None:
    """Shells start their commands there."""


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
    return Shell(home, {"COUNTERSEAL_URL": desk.url, "COUNTERSEAL_KEY": desk.key})


@pytest.fixture
def rita_shell(desk: Desk, home: Path) -> Shell:
    """The shell of the reviewer at the real gate."""
    token = tokens.create_token(person=desk.people.rita, name="terminal")
    return Shell(home, {"COUNTERSEAL_URL": desk.url, "COUNTERSEAL_TOKEN": token})


@pytest.fixture
def loopback_shell(gate: LoopbackGate, home: Path) -> Shell:
    """The shell of an agent at a small gate that answers as it is told."""
    return Shell(home, {"COUNTERSEAL_URL": gate.url, "COUNTERSEAL_KEY": KEY})


def build_policy() -> dict[str, Any]:
    """The tests' policy with the tools of Claude Code, as an administrator adds
    them."""
    document = factories.document_of_tests()
    added = yaml.safe_load(POLICY_FILE.read_text())
    for key in ("queues", "tools"):
        document[key] |= added[key]
    return document


@pytest.fixture
def claude_desk(live: Stack, empty_world: None) -> Iterator[Desk]:
    """A gate whose agent is Claude Code."""
    people = factories.cast()
    policy = factories.policy(people, build_policy())
    agent = factories.agent(people["owen"], tools=list(ALL_GATE_TOOLS))
    desk = Desk(live, conftest.Gate(people, policy, agent))
    with desk.gate:
        yield desk


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture
def claude_shell(claude_desk: Desk, home: Path, workspace: Path) -> Shell:
    """Where Claude Code runs its hooks."""
    variables = {
        "COUNTERSEAL_URL": claude_desk.url,
        "COUNTERSEAL_KEY": claude_desk.key,
    }
    return Shell(home, {**variables, "CLAUDE_PROJECT_DIR": str(workspace)})
