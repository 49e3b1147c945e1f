"""The adapter for the Vercel AI SDK with the real SDK, where `npm ci` in
client/typescript has installed it. CI has none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from agents import keys
from reviews.models import ApprovalRequest, Execution
from tests import conformance, factories
from tests.client.typescript.node import NODE, PACKAGE
from tests.factories import decide
from tests.stack import Stack

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(
        not (PACKAGE / "node_modules" / "ai").exists(),
        reason="ai is not installed: npm ci in client/typescript",
    ),
]

EXAMPLE = PACKAGE / "examples" / "ai-agent.ts"
EDITED = {"to": "ann", "text": "It comes on Monday."}


class Run:
    """One run of the example at the real gate, in a process for each step."""

    def __init__(self, live: Stack, folder: Path) -> None:
        self.people = factories.cast()
        factories.policy(self.people, yaml.safe_load(conformance.POLICY.read_text()))
        agent = factories.agent(
            self.people["owen"], conformance.AGENT, tools=["send_note"]
        )
        self.key = keys.issue_key(agent=agent, by=self.people["owen"])
        self.url, self.messages = live.base_url, folder / "messages.json"

    def start_node(self, program: Path, *words: str) -> tuple[int, str]:
        source = "--conditions=@counterseal/source"
        done = subprocess.run(
            [NODE, source, str(program), *words],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "COUNTERSEAL_URL": self.url,
                "COUNTERSEAL_KEY": self.key,
            },
        )
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    def run_example(self, action: str) -> tuple[int, str]:
        return self.start_node(EXAMPLE, action, "run-1", str(self.messages))

    def decide(self, verdict: str, **fields: object) -> None:
        decide(ApprovalRequest.objects.get(), self.people["rita"], verdict, **fields)


@pytest.fixture
def run(live: Stack, empty_world: None, tmp_path: Path) -> Run:
    return Run(live, tmp_path)


def test_the_example_performs_the_edited_call_once(run: Run) -> None:
    ended, said = run.run_example("start")
    request = ApprovalRequest.objects.get()
    assert (ended, said.startswith("Waits: People decide at ")) == (0, True)
    assert f"/requests/{request.pk}/" in said
    run.decide("modify", args=EDITED, reason_code="other", reason="Say when.")
    waiting = run.messages.read_text()
    ended, said = run.run_example("resume")
    assert ended == 0
    assert "It comes on Monday." in said
    # The same messages once more, as after a crash before they were stored.
    run.messages.write_text(waiting)
    ended, said = run.run_example("resume")
    assert (ended, "Sending" in said) == (0, False)
    assert Execution.objects.get().status == "succeeded"
    result = json.loads(run.messages.read_text())[-2]["content"][0]["output"]["value"]
    assert result.startswith("A reviewer changed this call. Performed instead: ")


def test_a_rejection_is_the_models_answer(run: Run) -> None:
    run.run_example("start")
    run.decide("reject", reason_code="not_needed", reason="She knows.")
    ended, said = run.run_example("resume")
    assert (ended, "Sending" in said) == (0, False)
    assert "She knows." in run.messages.read_text()


def test_an_approval_that_a_client_wrote_performs_nothing(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "letters"
    program = Path(__file__).with_name("forged_approval.mts")
    ended, said = run.start_node(program, run.url, run.key, "run-2", str(file))
    assert ended == 0
    assert "The call is waiting." in said
    assert not file.exists()
    assert ApprovalRequest.objects.get().status == "pending"
