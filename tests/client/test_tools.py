"""Functions behind the gate: what a call proposes, waits for, performs and reports, on
the whole product, with people who decide through its own operations."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

import anyio
import httpx2
import pytest

from agents import keys
from agents.registry import AgentChange
from counterseal_client import (
    ApiError,
    ApprovalPending,
    AsyncGate,
    Gate,
    GatedTool,
    InvalidArguments,
    NothingHappened,
    NotPerformed,
    OutcomeUnknown,
    Rejected,
    ReturnedForRevision,
    ToolNotDeclared,
    ToolRisk,
    get_claim,
)
from counterseal_client.grants import InvalidGrant
from counterseal_client.tools import ToolDefinition
from policies.documents import loading
from reviews import deadlines
from reviews.decisions import returns
from reviews.models import ApprovalRequest, Execution, Proposal
from tests import conftest, factories
from tests.agents import loosening
from tests.client.mcp.conftest import POLICY
from tests.factories import decide
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.servers

LETTER = {"to": "a friend", "text": "hello"}


class Desk:
    """An agent at the real gate, and what its functions did."""

    def __init__(self, live: Stack, people: conftest.Gate) -> None:
        self.people = people
        self.key = keys.issue_key(agent=people.agent, by=people.owen)
        self.url = live.base_url
        self.http = httpx2.Client(trust_env=False)
        self.gate = Gate(self.url, self.key, http=self.http)
        self.sent: list[tuple[str, str, str]] = []

    def build_writer(self, gate: Gate, **options: Any) -> GatedTool[..., Any]:
        """The tool `write`, which the agent performs itself."""

        @gate.tool("write", **options)
        def write(to: str, text: str) -> dict[str, int]:
            """Write a letter."""
            self.sent.append((to, text, get_claim().idempotency_key))
            return {"number": len(self.sent)}

        return write

    def find_request(self) -> ApprovalRequest:
        """The request that a call opened, as soon as it has."""
        wait_until(lambda: ApprovalRequest.objects.exists(), 20)
        return ApprovalRequest.objects.get()

    def decide(self, verdict: str = "approve", **fields: Any) -> None:
        decide(self.find_request(), self.people.rita, verdict, **fields)


@pytest.fixture
def desk(live: Stack, empty_world: None) -> Iterator[Desk]:
    desk = Desk(live, conftest.make_gate())
    with desk.gate:
        yield desk


def call_later(function: Callable[[], Any]) -> tuple[ThreadPoolExecutor, Any]:
    pool = ThreadPoolExecutor(1)
    return pool, pool.submit(function)


def call_writer(writer: GatedTool[..., Any], **more: Any) -> Any:
    given = {"thread": "t-1", "call_id": "c-1", "rationale": "asked", **more}
    return writer.call(dict(LETTER), **given)


def suspend(writer: GatedTool[..., Any]) -> None:
    """Propose the call and give up waiting, as a process that dies does."""
    with pytest.raises(ApprovalPending):
        call_writer(writer, wait_seconds=0)


def test_a_call_waits_performs_and_reports(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    pool, answer = call_later(lambda: call_writer(writer))
    with pool:
        desk.decide()
        assert answer.result(30) == {"number": 1}
    execution = Execution.objects.get()
    assert execution.status == "succeeded"
    assert desk.sent == [("a friend", "hello", execution.idempotency_key)]


def test_the_same_call_of_another_process_goes_on(desk: Desk) -> None:
    suspend(desk.build_writer(desk.gate))
    desk.decide()
    with Gate(desk.url, desk.key, http=httpx2.Client(trust_env=False)) as second:
        writer = desk.build_writer(second)
        assert call_writer(writer) == {"number": 1}
        assert call_writer(writer) == {"number": 1}
    assert (len(desk.sent), Proposal.objects.count()) == (1, 1)


def test_two_processes_that_resume_at_once_make_one_effect(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    desk.decide()
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(call_writer, writer) for _ in range(2)]
        assert [answer.result(30) for answer in answers] == [{"number": 1}] * 2
    assert len(desk.sent) == 1


def test_edited_arguments_are_the_ones_that_run(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    args = {"to": "a friend", "text": "good morning"}
    desk.decide("modify", args=args, reason_code="other", reason="Shorter.")
    call_writer(writer)
    assert [text for _, text, _ in desk.sent] == ["good morning"]
    names: Any = {"thread": "t-1", "call_id": "c-1", "rationale": "asked"}
    result = writer.perform(dict(LETTER), **names)
    assert (result.value, result.args, result.edited) == ({"number": 1}, args, True)


def test_an_edit_that_does_not_fit_the_function_is_not_performed(desk: Desk) -> None:
    @desk.gate.tool("write")
    def write(to: str, text: Literal["hello", "goodbye"]) -> None:
        desk.sent.append((to, text, ""))

    suspend(write)
    args = {**LETTER, "text": "good morning"}
    desk.decide("modify", args=args, reason_code="other", reason="Politer.")
    with pytest.raises(InvalidArguments, match=r"text: .*'hello' or 'goodbye'"):
        call_writer(write)
    assert desk.sent == []
    execution = Execution.objects.get()
    assert (execution.status, execution.code) == ("failed", "not_performed")


def test_a_rejection_carries_its_reason_to_the_model(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    desk.decide("reject", reason_code="not_needed", reason="They know already.")
    with pytest.raises(Rejected) as caught:
        call_writer(writer)
    assert caught.value.reason_code == "not_needed"
    assert str(caught.value) == (
        'write: A reviewer rejected it (not needed). They wrote: "They know already."'
        " Do not call it again with the same arguments."
    )
    assert desk.sent == []


def test_an_expired_call_is_not_performed(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    factories.overdue(desk.find_request())
    deadlines.expire_chunk()
    with pytest.raises(NotPerformed, match="Nobody decided in time") as caught:
        call_writer(writer)
    assert caught.value.proposal.status == "expired"
    assert desk.sent == []


def test_a_call_whose_window_closed_is_not_performed(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    desk.decide()
    grant = Execution.objects.get().grant
    type(grant).objects.filter(pk=grant.pk).update(expires_at=grant.issued_at)
    with pytest.raises(NotPerformed, match="no longer held") as caught:
        call_writer(writer)
    assert caught.value.proposal.status == "refused"
    assert desk.sent == []


def test_a_returned_call_hands_over_the_guidance(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    decide(desk.find_request(), desk.people.rita, "escalate")
    returns.return_with_guidance(
        request_id=desk.find_request().pk,
        person=desk.people.sue,
        guidance="Say who it is from.",
    )
    with pytest.raises(ReturnedForRevision, match="Say who it is from"):
        call_writer(writer)


def test_an_undeclared_tool_says_what_to_declare(desk: Desk) -> None:
    @desk.gate.tool()
    def paint(wall: str) -> None:
        """Paint a wall."""

    with desk.gate.thread("t-1"), pytest.raises(ToolNotDeclared) as caught:
        paint("north")
    assert "AGENT --by ADMINISTRATOR --add-tool paint`" in caught.value.next_step
    assert '"wall": {' in caught.value.declaration
    with pytest.raises(LookupError, match="paint is not declared"):
        desk.gate.check_tools()


def test_the_printed_entry_loads_and_the_same_call_then_waits(desk: Desk) -> None:
    """The advice of the error is true: the same program goes on in the same run."""

    @desk.gate.tool(wait_seconds=0)
    def paint(wall: str) -> None:
        """Paint a wall."""

    with desk.gate.thread("t-1"), pytest.raises(ToolNotDeclared) as caught:
        paint("north")
    text = caught.value.declaration
    text = text.replace("<queue>", "mail").replace("<high or critical>", "high")
    document = factories.document_of_tests()
    document["tools"] |= json.loads(text)
    factories.policy(desk.people.people, document)
    loosening.loosen(
        desk.people, AgentChange(tools=[*desk.people.agent.tools, "paint"])
    )
    with desk.gate.thread("t-1"), pytest.raises(ApprovalPending):
        paint("north")
    assert desk.find_request().proposal.tool_name == "paint"


def test_an_argument_that_the_policy_lacks_is_found_before_a_call(desk: Desk) -> None:
    @desk.gate.tool("write")
    def write(to: str, body: str) -> None:
        """Write a letter."""

    with pytest.raises(LookupError, match="write declares no argument body"):
        desk.gate.check_tools()


def test_each_call_of_a_tool_of_the_gate_returns_a_record(
    desk: Desk, live: Stack
) -> None:
    @desk.gate.tool()
    def tag(label: str) -> dict[str, Any]:
        raise AssertionError("The gate performs this tool.")

    live.start_worker(beat=False, processes=1)
    for _ in range(2):  # the run, and its repetition
        with desk.gate.thread("t-1"):
            for _ in range(2):  # equal calls of one run are told apart
                assert tag("vip")["done"]
    assert Proposal.objects.count() == 2


def test_one_call_id_stands_for_one_action(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    other = {"to": "a friend", "text": "something else"}
    with pytest.raises(ApiError, match="same arguments and details") as caught:
        writer.call(other, thread="t-1", call_id="c-1", rationale="asked")
    assert caught.value.code == "key_reused"


def test_a_function_that_fails_leaves_the_outcome_to_people(desk: Desk) -> None:
    @desk.gate.tool("write")
    def write(to: str, text: str) -> None:
        raise ConnectionError("the line was cut")

    suspend(write)
    desk.decide()
    with pytest.raises(ConnectionError):
        call_writer(write)
    assert Execution.objects.get().status == "unknown"
    with pytest.raises(OutcomeUnknown, match="Do not call it again"):
        call_writer(write)


def test_a_function_that_knows_better_says_that_nothing_happened(desk: Desk) -> None:
    @desk.gate.tool("write")
    def write(to: str, text: str) -> None:
        raise NothingHappened("No stamps.", code="no_stamps")

    suspend(write)
    desk.decide()
    with pytest.raises(NothingHappened):
        call_writer(write)
    execution = Execution.objects.get()
    assert (execution.status, execution.code) == ("failed", "no_stamps")


def test_a_grant_is_verified_for_its_audience(desk: Desk) -> None:
    proposal = factories.propose(desk.people.agent, "write", thread="t-9")
    decide(proposal.request, desk.people.rita)
    grant = desk.gate.get(proposal.pk).grant
    assert grant is not None
    claim = desk.gate.redeem(grant.token)
    verified = desk.gate.verify_grant(claim, audience="tool:write")
    assert verified.action_hash == claim.action_hash
    with pytest.raises(InvalidGrant, match="wrong_audience"):
        desk.gate.verify_grant(claim, audience="tool:deploy")


def test_a_risk_in_the_code_asks_a_person(
    desk: Desk,
) -> None:
    @desk.gate.tool(risk=ToolRisk.CRITICAL, wait_seconds=0)
    def tag(label: str) -> None:
        """Put a tag."""

    with desk.gate.thread("t-1"), pytest.raises(ApprovalPending) as caught:
        tag("vip")
    assert caught.value.proposal.tier == "approve"


def test_a_call_needs_arguments_that_fit(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    with desk.gate.thread("t-1"), pytest.raises(InvalidArguments, match="text"):
        writer("a friend", 7)
    assert Proposal.objects.count() == 0


@pytest.fixture
def bare_desk(desk: Desk) -> Desk:
    """Where the agent may call `send_note`, which asks for no rationale."""
    factories.policy(desk.people.people, POLICY)
    desk.people.agent.tools = ["send_note"]
    desk.people.agent.save()
    return desk


def test_a_call_outside_a_thread_belongs_to_this_process(
    bare_desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    @bare_desk.gate.tool
    def send_note(to: str, text: str) -> str:
        """Send a note."""
        return f"{text}, {to}"

    pool, answer = call_later(lambda: send_note("a friend", "hello"))
    with pool:
        request = bare_desk.find_request()
        bare_desk.decide()
        assert answer.result(30) == "hello, a friend"
    page = f"{bare_desk.url}/requests/{request.pk}/"
    assert f"send_note waits for a decision: {page}" in caplog.text
    thread = Proposal.objects.get().thread
    assert re.fullmatch(r"[A-Za-z0-9-]+-[a-z]{8}", thread)


@pytest.mark.parametrize("named", [True, False])
def test_an_interrupted_call_outside_a_thread_is_withdrawn(
    bare_desk: Desk, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    @bare_desk.gate.tool
    def send_note(to: str, text: str) -> None:
        """Send a note."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    run = bare_desk.gate.thread("t-1") if named else nullcontext()
    monkeypatch.setattr(ToolDefinition, "follow_proposal", interrupt)
    with run, pytest.raises(KeyboardInterrupt):
        send_note("a friend", "hello")
    status = ApprovalRequest.objects.get().status
    assert status == ("pending" if named else "withdrawn")


def test_the_async_gate_behaves_alike(desk: Desk) -> None:
    done = threading.Event()

    async def perform() -> Any:
        async with AsyncGate(
            desk.url, desk.key, http=httpx2.AsyncClient(trust_env=False)
        ) as gate:

            @gate.tool("write")
            async def write(to: str, text: str) -> dict[str, str]:
                return {"key": get_claim().idempotency_key}

            with gate.thread("t-1", rationale="asked"):
                found: Any = await write(**LETTER)
            listed = [proposal.status async for proposal in gate.list()]
            return found, listed

    def run() -> Any:
        try:
            return anyio.run(perform)
        finally:
            done.set()

    pool, answer = call_later(run)
    with pool:
        desk.decide()
        assert done.wait(30)
        found, listed = answer.result()
    assert found == {"key": Execution.objects.get().idempotency_key}
    assert listed == ["executed"]


def test_a_call_whose_process_died_in_the_effect_is_repeated_with_its_key(
    desk: Desk,
) -> None:
    writer = desk.build_writer(desk.gate)
    suspend(writer)
    desk.decide()
    proposal = next(desk.gate.list())
    assert proposal.grant is not None
    dead = desk.gate.redeem(proposal.grant.token)  # by a process that then dies
    pool, answer = call_later(lambda: call_writer(writer))
    with pool:
        factories.lapsed(Execution.objects.get())
        assert answer.result(30) == {"number": 1}
    execution = Execution.objects.get()
    assert (execution.fence, execution.status) == (2, "succeeded")
    assert [key for _, _, key in desk.sent] == [dead.idempotency_key]


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("risk", ["high", "critical"])
def test_the_entry_that_is_printed_loads_with_every_risk_that_it_offers(
    desk: Desk, risk: str
) -> None:
    def issue_credit(
        amount: Decimal,
        customer: str,
        colour: Colour = Colour.RED,
        day: date | None = None,
        notes: dict[str, list[int]] | None = None,
    ) -> None: ...

    def nothing() -> None: ...

    issue_credit.__doc__ = "It is long. " * 100
    calls: list[tuple[Any, list[Any]]]
    calls = [(issue_credit, [Decimal("1.50"), "c-1"]), (nothing, [])]
    for function, given in calls:
        with desk.gate.thread("t-1"), pytest.raises(ToolNotDeclared) as caught:
            desk.gate.tool()(function)(*given)
        text = caught.value.declaration
        offered = re.search(r'"risk": "<(.*?)>"', text)
        assert offered is not None
        assert re.split(", | or ", offered[1]) == ["high", "critical"]
        entry = json.loads(text.replace(offered[0], f'"risk": "{risk}"'))
        entry[function.__name__]["queue"] = "notes"
        loaded = loading.parse_document({**POLICY, "tools": entry})
        assert loaded.tools[function.__name__].risk == risk
