"""A real gate with the tools of the tests' MCP servers, and the official client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, TextContent

import counterseal_client
from agents import keys
from counterseal_client import Gate
from policies.models import Person
from reviews.models import ApprovalRequest, Proposal, Question
from reviews.questions import questions
from tests import factories
from tests.client.fork_server.commands import NO_AUTHORITIES, build_command
from tests.guards import ROOT
from tests.stack import PATIENCE_S, Stack, wait_until

HERE = Path(__file__).parent
POLICY = yaml.safe_load((HERE / "policy.yaml").read_text())
# As people start them; the others come from the fork server.
PYTHON_PROXY = [sys.executable, "-m", "counterseal_client.mcp"]
PYTHON_NOTES = [sys.executable, str(HERE / "note_server.py")]
PROXY = build_command("-m", "counterseal_client.mcp")
NOTES = build_command(str(HERE / "note_server.py"))
HOSTILE = build_command(str(HERE / "hostile_server.py"))


@dataclass
class Bench:
    """The gate, one agent, and a folder for its servers."""

    url: str
    key: str
    people: dict[str, Person]
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            **NO_AUTHORITIES,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "client"), str(ROOT)]),
            "COUNTERSEAL_URL": self.url,
            "COUNTERSEAL_KEY": self.key,
            "NOTES": str(self.folder / "notes"),
            "HOLD": str(self.folder / "hold"),
            "CHANGED": str(self.folder / "changed"),
            **self.extra,
        }

    def start(self, *words: str) -> StdioServerParameters:
        """A command for the client to start; its process id is in the file `pid`."""
        script = 'echo $$ > "$0"; exec "$@"'
        args = ["-c", script, str(self.folder / "pid"), *words]
        return StdioServerParameters(command="sh", args=args, env=self.environ)

    def proxy(
        self,
        *options: str,
        command: list[str] = PROXY,
        server: list[str] = NOTES,
    ) -> StdioServerParameters:
        return self.start(*command, *options, "--", *server)

    @property
    def notes(self) -> list[dict[str, str]]:
        """What the server did."""
        file = self.folder / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def await_request(self, number: int = 1) -> ApprovalRequest:
        """The newest request, once there are so many."""
        wait_until(lambda: ApprovalRequest.objects.count() == number, PATIENCE_S)
        return ApprovalRequest.objects.latest("opened_at")

    def decide(self, verdict: str = "approve", number: int = 1, **facts: Any) -> None:
        request = self.await_request(number)
        factories.decide(request, self.people["rita"], verdict, **facts)

    def answer(self, answer: dict[str, Any]) -> None:
        """Answer the question that waits, once there is one."""
        wait_until(lambda: Question.objects.exists(), PATIENCE_S)
        questions.answer_question(
            question_id=Question.objects.get().pk,
            person=self.people["rita"],
            answer=answer,
        )

    def read_proposal(self) -> counterseal_client.Proposal:
        """The newest proposal, as its agent sees it."""
        with Gate(self.url, self.key) as gate:
            return gate.get(Proposal.objects.latest("created_at").pk)

    def read_execution(self) -> counterseal_client.Execution:
        execution = self.read_proposal().execution
        assert execution is not None
        return execution


@pytest.fixture(scope="session", autouse=True)
def commands(fork_server: None) -> None:
    """Proxies and servers are started there."""


@pytest.fixture
def bench(live: Stack, empty_world: None, tmp_path: Path) -> Bench:
    people = factories.cast()
    factories.policy(people, POLICY)
    agent = factories.agent(people["owen"], "notes", tools=list(POLICY["tools"]))
    key = keys.issue_key(agent=agent, by=people["owen"])
    os.mkfifo(tmp_path / "hold")
    return Bench(live.base_url, key, people, tmp_path)


@dataclass
class Caller:
    """The official client, for tests that are no coroutines."""

    portal: BlockingPortal
    client: Client

    def begin(self, tool: str, /, **arguments: Any) -> Future[CallToolResult]:
        """Call a tool and go on."""
        return self.portal.start_task_soon(self.client.call_tool, tool, arguments)

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        return self.begin(tool, **arguments).result(PATIENCE_S)


@contextmanager
def connect(server: Any, **options: Any) -> Iterator[Caller]:
    client = Client(server, **options)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(client) as entered,
    ):
        yield Caller(portal, entered)


def text_of(result: CallToolResult) -> str:
    return "\n".join(p.text for p in result.content if isinstance(p, TextContent))
