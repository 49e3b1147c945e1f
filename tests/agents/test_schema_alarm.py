"""What an agent is told fits the published schema, in every state that a proposal can
reach; what does not fit is not told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from django.test import Client
from jsonschema_rs import Draft202012Validator

from agents import keys, representation
from agents.models import Acknowledgement, Delivery
from agents.schemas.proposals import ProposalOut
from agents.webhooks import payloads
from journal import clock
from journal.errors import DomainError
from reviews import deadlines
from reviews.choices import REQUEST_SPECS, ExecutionStatus, RequestStatus, Scope
from reviews.decisions import returns
from reviews.executions import claims, record
from reviews.executions import run as executions
from reviews.executions import settle as settlements
from reviews.executions.redeem import redeem_grant
from reviews.models import Alarm, ApprovalRequest, Execution, Grant
from reviews.outbound import webhooks
from reviews.requests import proposals
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.agents.conftest import Caller
from tests.agents.webhooks import deliveries
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
TOOLS = ("pay", "look", "tag", "deploy", "decline", "pay_opaque", "nowhere", "write")


def published() -> dict[str, Any]:
    """The schema as anybody can read it."""
    found: dict[str, Any] = Client().get("/api/v1/openapi.json").json()
    return found


def validator(name: str) -> Draft202012Validator:
    return build_validator({"$ref": f"#/components/schemas/{name}"})


def build_validator(reference: dict[str, str]) -> Draft202012Validator:
    components = published()["components"]
    return Draft202012Validator({**reference, "components": components})


class Walk:
    """One proposal on its way; every step is an operation that may refuse."""

    def __init__(self, gate: Gate, tool: str, thread: str = "t-1") -> None:
        self.gate, self.key = gate, stops.build_thread_key(gate.agent.slug, thread)
        self.proposal = factories.propose(
            gate.agent, tool, thread=thread, callback_url=CALLBACK
        )

    def step(self, name: str) -> None:
        try:
            getattr(self, name)()
        except (DomainError, ApprovalRequest.DoesNotExist, Execution.DoesNotExist):
            """Not possible from here: the state stays."""

    @property
    def request(self) -> ApprovalRequest:
        return ApprovalRequest.objects.get(proposal=self.proposal)

    @property
    def execution(self) -> Execution:
        return Execution.objects.get(proposal=self.proposal)

    def approve(self) -> None:
        factories.decide(self.request, self.gate.rita)

    def approve_high(self) -> None:
        for one in (self.gate.sue, self.gate.sam):
            factories.decide(self.request, one)

    def reject(self) -> None:
        factories.decide(self.request, self.gate.tom, "reject")

    def modify(self) -> None:
        args = {"customer": "C-1", "amount": "12.00", "currency": "USD"}
        factories.decide(self.request, self.gate.rita, "modify", args=args)

    def escalate(self) -> None:
        factories.decide(self.request, self.gate.rita, "escalate")

    def give_back(self) -> None:
        returns.return_with_guidance(
            request_id=self.request.pk,
            person=self.gate.sue,
            guidance="Ask dana@mail.example for the receipt.",
        )

    def expire(self) -> None:
        factories.overdue(self.request)
        deadlines.expire_chunk()

    def withdraw(self) -> None:
        proposals.withdraw_stopped_proposal(
            proposal_id=self.proposal.pk, code="stopped"
        )

    def supersede(self) -> None:
        factories.propose(self.gate.agent, "pay", supersedes=self.proposal.pk)

    def run(self) -> None:
        executions.run_execution(self.execution.pk)

    def lose(self) -> None:
        self._record("unknown")

    def fail(self) -> None:
        self._record("failed")

    def _record(self, status: Any) -> None:
        pk = self.execution.pk
        claim = claims.claim_execution(execution_id=pk, actor=claims.EXECUTOR_ACTOR)
        if claim is not None:
            record.record_outcome(
                execution_id=pk,
                fence=claim.fence,
                outcome=EffectOutcome(status, code="odd", detail="nobody knows"),
                actor=claims.EXECUTOR_ACTOR,
            )

    def close_window(self) -> None:
        Grant.objects.filter(proposal=self.proposal).update(expires_at=clock.now())
        executions.run_execution(self.execution.pk)

    def settle(self) -> None:
        settlements.settle_unknown(
            execution_id=self.execution.pk,
            person=self.gate.sue,
            happened=True,
            reason="seen",
        )

    def retry(self) -> None:
        settlements.retry_execution(
            execution_id=self.execution.pk, person=self.gate.rita
        )

    def stop(self) -> None:
        stops.create_stop(
            scope=Scope.THREAD, key=self.key, person=self.gate.sue, reason="odd"
        )
        self.run()

    def redeem(self) -> None:
        described = self.described()
        if described["grant"]:
            token = described["grant"]["token"]
            redeem_grant(token=token, agent=self.gate.agent.slug)

    def described(self) -> dict[str, Any]:
        loaded = representation.find_proposal("riley", self.proposal.pk)
        assert loaded is not None
        return representation.build_proposal_json(loaded)


CALLBACK = "https://agent.example/hook"
STEPS = [
    name
    for name in vars(Walk)
    if not name.startswith("_") and name not in {"step", "request", "execution"}
]
STEPS.remove("described")
# Ways to every word that an agent can be told; the property test walks anywhere.
WAYS = {
    "blocked": ("nowhere",),
    "pending": ("pay",),
    "granted": ("deploy", "approve_high"),
    "executing": ("deploy", "approve_high", "redeem"),
    "executed": ("pay", "approve", "run"),
    "failed": ("decline", "approve", "run"),
    "unknown": ("pay_opaque", "approve", "lose"),
    "refused": ("pay", "approve", "close_window"),
    "rejected": ("pay", "reject"),
    "expired": ("pay", "expire"),
    "withdrawn": ("pay", "withdraw"),
    "superseded": ("pay", "supersede"),
}


def walked(gate: Gate, way: tuple[str, ...]) -> Walk:
    walk = Walk(gate, way[0])
    for step in way[1:]:
        walk.step(step)
    return walk


@pytest.mark.parametrize("word", WAYS)
def test_every_word_is_reached_and_fits(gate: Gate, word: str) -> None:
    described = walked(gate, WAYS[word]).described()
    assert described["status"] == word
    validator("ProposalOut").validate(described)
    acts = word in representation.FINAL_STATUSES or described["grant"] is not None
    assert (described["outcome"] is not None) == acts


def test_every_word_has_a_way() -> None:
    assert set(WAYS) == set(representation.STATUSES)


def test_the_answer_has_every_field_of_the_schema(gate: Gate) -> None:
    described = walked(gate, WAYS["executed"]).described()
    names = {field.alias or name for name, field in ProposalOut.model_fields.items()}
    assert set(described) == names


def test_wherever_it_goes_it_fits(gate: Gate, proof_n: Callable[..., int]) -> None:
    """Any walk of operations: the answer and every letter fit what is published."""
    answers, told = published_forms()
    words = set()
    for number in range(proof_n(small=20, full=1000)):
        dice = random.Random(number)
        walk = Walk(gate, dice.choice(TOOLS), f"w-{number}")
        for name in dice.choices(STEPS, k=dice.randint(0, 6)):
            walk.step(name)
            described = walk.described()
            answers.validate(described)
            words.add(described["status"])
        deliveries.promised()
        for letter in Delivery.objects.filter(proposal=walk.proposal.pk):
            payloads.encode_payload(letter.payload)
            told.validate(letter.payload)
    assert len(words) > 6


@cache
def published_forms() -> tuple[Draft202012Validator, Draft202012Validator]:
    return validator("ProposalOut"), letter_validator()


def letter_validator() -> Draft202012Validator:
    hook = published()["webhooks"]["proposal.settled"]["post"]["requestBody"]
    return build_validator(hook["content"]["application/json"]["schema"])


def test_each_event_is_published(gate: Gate) -> None:
    assert set(published()["webhooks"]) == {
        "proposal.settled",
        "proposal.executed",
        "request.opened",
        "request.escalated",
        "request.asked",
        "request.answered",
        "request.sent_back",
        "execution.unknown",
    }


def kinds(gate: Gate, way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    walk = walked(gate, way)
    deliveries.promised()
    for letter in Delivery.objects.filter(proposal=walk.proposal.pk):
        yield letter.kind, letter.payload["data"]["status"]


@pytest.mark.parametrize(
    ("word", "event"),
    [
        ("executed", "proposal.executed"),
        ("failed", "proposal.settled"),
        ("unknown", "execution.unknown"),
        ("refused", "proposal.settled"),
        ("rejected", "proposal.settled"),
        ("expired", "proposal.settled"),
        ("withdrawn", "proposal.settled"),
        ("superseded", "proposal.settled"),
    ],
)
def test_every_end_is_told_by_an_event(gate: Gate, word: str, event: str) -> None:
    assert (event, word) in set(kinds(gate, WAYS[word]))


def test_an_escalation_is_told(gate: Gate) -> None:
    told = set(kinds(gate, ("pay", "escalate")))
    assert ("request.escalated", "pending") in told


def test_a_refusal_is_told_with_its_code(gate: Gate) -> None:
    walk = walked(gate, WAYS["refused"])
    deliveries.promised()
    letter = Delivery.objects.get(
        proposal=walk.proposal.pk, payload__data__status="refused"
    )
    execution = letter.payload["data"]["execution"]
    assert execution["status"] == ExecutionStatus.REFUSED
    assert execution["code"] == walk.execution.code != ""
    assert walk.described()["execution"]["code"] == walk.execution.code


def test_what_was_given_back_says_so_and_why(gate: Gate) -> None:
    walk = walked(gate, ("pay", "escalate", "give_back"))
    described = walk.described()
    assert described["returned"]
    (message,) = described["messages"]
    assert (message["from"], message["kind"], message["round"]) == (
        "supervisor",
        "guidance",
        1,
    )
    assert "dana@mail.example" not in message["text"]
    assert message["text"].startswith("Ask ")
    walk.step("reject")
    assert not walk.described()["returned"]
    assert walk.described()["messages"] == [message]


def test_who_waits_is_answered_when_something_is_written(
    gate: Gate, caller: Caller
) -> None:
    walk = walked(gate, ("pay", "escalate"))
    waits = [caller.get(f"/proposals/{walk.proposal.pk}?wait=1")["Counterseal-Wait"]]
    walk.step("give_back")
    waits.append(
        caller.get(f"/proposals/{walk.proposal.pk}?wait=1")["Counterseal-Wait"]
    )
    assert waits == [f"{walk.proposal.pk};0", f"{walk.proposal.pk};1"]


def test_half_an_outcome_is_never_sent(
    gate: Gate, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = factories.propose(gate.agent, "pay", checkpoint={"summary": "waits"})
    dream = replace(REQUEST_SPECS[RequestStatus.PENDING], api_word="dreaming")
    dreams = {RequestStatus.PENDING: dream}
    monkeypatch.setattr(representation, "REQUEST_SPECS", dreams)
    for path in (f"/proposals/{proposal.pk}", "/threads/t-1/checkpoint", "/proposals"):
        answer = caller.get(path)
        assert answer.status_code == 500
        problem = answer.json()
        assert problem["code"] == "server"
        assert "Reference " in problem["detail"]
        assert "thread" not in problem
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.subject) == ("invalid_outcome", proposal.pk)
    assert alarm.data["places"] == "status"
    assert alarm.data["reference"] in problem["detail"] or alarm.times > 1


def test_acknowledging_by_the_api(gate: Gate, caller: Caller, receiver: Any) -> None:
    proposal = deliveries.rejected(gate, checkpoint={"summary": "waits"})
    path = f"/proposals/{proposal.pk}"
    outcome = caller.get(path).json()["outcome"]
    assert caller.get("/threads/t-1/checkpoint").json()["acknowledged"] is False
    assert caller.post(f"{path}/acknowledge", {"outcome": "o-odd"}).status_code == 409
    assert caller.post(f"{path}/acknowledge", {}).status_code == 422
    answers = [caller.post(f"{path}/acknowledge", {"outcome": outcome}) for _ in "ab"]
    assert {answer.status_code for answer in answers} == {200}
    first, second = (answer.json()["acknowledged_at"] for answer in answers)
    assert first == second is not None
    assert caller.get("/threads/t-1/checkpoint").json()["acknowledged"] is True
    assert Acknowledgement.objects.count() == 1


def test_nobody_elses_outcome_is_acknowledged(gate: Gate, caller: Caller) -> None:
    proposal = deliveries.rejected(gate)
    outcome = caller.get(f"/proposals/{proposal.pk}").json()["outcome"]
    other = factories.agent(gate.owen, "other")
    stranger = Caller(keys.issue_key(agent=other, by=gate.owen), caller.numbers)
    path = f"/proposals/{proposal.pk}/acknowledge"
    assert stranger.post(path, {"outcome": outcome}).status_code == 404
    assert not Acknowledgement.objects.exists()


def test_a_key_of_the_release_before_is_still_known(gate: Gate, caller: Caller) -> None:
    """`callback_url` is in no fingerprint of who names none."""
    first = caller.propose(key="k-old")
    again = caller.propose(key="k-old")
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    named = caller.propose(key="k-old", callback_url=CALLBACK)
    assert named.json()["code"] == "key_reused"


def test_a_letter_is_checked_right_before_it_is_sent(
    gate: Gate, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Callable[..., Any]] = []
    monkeypatch.setattr(webhooks, "send_webhook_event", sent.append)
    walk = walked(gate, ("pay",))
    deliveries.promised()
    Delivery.objects.update(payload={"type": "odd"})
    deliveries.carry()
    assert not sent
    assert Delivery.objects.get(proposal=walk.proposal.pk).status == "held"
