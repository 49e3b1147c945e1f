from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from agents.models import Thread
from counterseal_client.claude_code import gate_tools
from journal.models import LogRecord
from reviews.choices import StopMode
from reviews.models import Proposal, Stop
from reviews.stops import stops
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide

CAP = 3


@pytest.fixture(autouse=True)
def capped_tool(gate: Gate) -> None:
    """Payments have a cap of three; the other tools have none."""
    document = factories.document_of_tests()
    document["tools"]["pay"]["iteration_cap"] = CAP
    factories.policy(gate.people, document)


class Run:
    """One run that asks for something new each time."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._numbers = itertools.count()

    def ask(self, tool: str = "pay", **fields: Any) -> Any:
        number = next(self._numbers)
        if tool == "pay":
            fields["customer"] = f"C-{number}"
        return self._caller.propose(tool, **fields)

    def ask_often(self, times: int) -> list[int]:
        return [self.ask().status_code for _ in range(times)]


@pytest.fixture
def run(caller: Caller) -> Run:
    return Run(caller)


def list_pauses() -> list[Stop]:
    return list(Stop.objects.filter(lifted_at__isnull=True))


def test_the_run_is_paused_at_the_cap_and_says_why(gate: Gate, run: Run) -> None:
    assert run.ask_often(CAP) == [201] * CAP
    assert list_pauses() == []
    refused = run.ask()
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (403, "agent_stopped")
    assert "3 times without a person's decision" in problem["detail"]
    assert "A person must resume the run" in problem["detail"]
    (pause,) = list_pauses()
    assert (pause.mode, pause.by, pause.key) == (
        StopMode.PAUSED,
        stops.SYSTEM,
        "riley/t-1",
    )
    record = LogRecord.objects.get(kind="stop.raised")
    assert (record.actor_kind, record.thread) == ("system", "t-1")
    again = run.ask().json()  # now by the pause
    assert "3 times without a person's decision" in again["detail"]
    assert Proposal.objects.count() == CAP
    assert len(list_pauses()) == 1
    assert run.ask(thread="t-2").status_code == 201


def test_a_tool_without_a_cap_counts_but_is_never_refused(run: Run) -> None:
    for number in range(CAP + 1):
        args = {"q": f"shoes {number}"}
        assert run.ask("look", args=args).status_code == 201
    assert run.ask().status_code == 403


def test_a_decision_a_new_plan_and_a_resumption_begin_the_count_again(
    gate: Gate, run: Run
) -> None:
    run.ask_often(CAP)
    decide(Proposal.objects.latest("created_at").request, gate.rita, "reject")
    assert run.ask_often(CAP) == [201] * CAP
    plan = {"state": {"plan": ["Look", "Pay"]}}
    assert run.ask(checkpoint=plan).status_code == 201  # brings the new plan itself
    same = [run.ask(checkpoint=plan).status_code for _ in range(CAP + 1)]
    assert same == [201] * CAP + [403]
    (pause,) = list_pauses()
    stops.lift_stop(stop_id=pause.pk, person=gate.sue, reason="It goes well.")
    assert run.ask_often(CAP + 1) == [201] * CAP + [403]


def test_the_refused_call_leaves_its_key_free(gate: Gate, caller: Caller) -> None:
    """The same call can be repeated once a person has resumed the run."""
    for number in range(CAP):
        caller.propose(customer=f"C-{number}")
    assert caller.propose(key="late", customer="C-9").status_code == 403
    (pause,) = list_pauses()
    stops.lift_stop(stop_id=pause.pk, person=gate.sue, reason="It goes well.")
    assert caller.propose(key="late", customer="C-9").status_code == 201
    assert Thread.objects.count() == 1


def test_the_tools_of_claude_code_have_a_cap_of_25() -> None:
    shipped = yaml.safe_load(gate_tools.POLICY_FILE.read_text())
    assert {tool["iteration_cap"] for tool in shipped["tools"].values()} == {25}
