"""Every case of the shop, through the product: the shipped policy, the real store's
readers, the operations that agents and people use. Money is text.
"""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.template import Context, Template

from agents import proposals
from agents.choices import ThreadResult
from journal import clock, errors
from journal.models import LogRecord
from policies import facts
from reviews.batches import decide as batches
from reviews.batches import formation
from reviews.decisions import decide as decisions
from reviews.executions import record, run
from reviews.models import Batch, Execution, Proposal
from tests import factories
from tests.conftest import Gate
from tests.demo.conftest import SECRET, Store
from tests.demo.conftest import store as store
from tests.factories import decide
from tests.policies import store as shipped
from tests.policies.shop_cases import CASES, Case, World
from tests.reviews.batches import batching

OPEN = [{"days": shipped.EVERY_DAY, "from": "00:00", "to": "24:00"}]
# Customer C-1017's order of 899.00, and somebody whose invoices need not be kept.
LAPTOP = {
    "order_id": "78291",
    "amount": "899.00",
    "currency": "USD",
    "reason": "not_received",
}
NOTE = "I'm Casey (casey@example.com). My laptop didn't arrive."


@pytest.fixture
def desk(gate: Gate, store: Store, settings: Any) -> Gate:
    """The gate with the shipped policy, calling the store's own process."""
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={
            "webhook_secret": SECRET,
            "webhook_networks": [factories.LOOPBACK],
        }
    )
    use(gate, store, World())
    gate.agent.tools = [*shipped.ARGS]
    gate.agent.save()
    return gate


def use(gate: Gate, store: Store, world: World) -> None:
    """The shipped policy in force, its calendars saying what hour the example has."""
    document = shipped.data()
    late = world.saturday_night or not 8 <= world.local_hour < 18
    document["calendars"]["store"]["open"] = [] if late else OPEN
    document["calendars"]["warehouse"]["open"] = [] if world.saturday_night else OPEN
    # No browser decides here, and only a page takes a written answer.
    document["desk"] = {"written_answer": []}
    factories.policy(gate.people, document, STORE_URL=store.url)


def ask(gate: Gate, tool: str, args: dict[str, Any], **fields: Any) -> Proposal:
    args = {**shipped.ARGS.get(tool, {}), **args}
    if tool == "delete_customer":
        args["customer_id"] = "C-1037"
    return factories.propose(gate.agent, tool, args=args, **fields)


def tier(proposal: Proposal) -> str:
    return proposal.current.tier


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_reaches_its_tier(
    desk: Gate, store: Store, case: Case, django_capture_on_commit_callbacks: Any
) -> None:
    world = case.world
    if world != World():
        use(desk, store, world)
    desk.agent.unattended = world.unattended
    desk.agent.save()
    for number in range(world.recent_failures):
        facts.record_failure(agent="riley", proposal=f"p-{number}", at=clock.now())
    for number, amount in enumerate(world.earlier_refunds):
        ask(desk, "process_refund", {"amount": amount}, thread=f"earlier-{number}")
    proposal = ask(desk, case.tool, case.args, rationale=world.suggestion or "asked")
    assert tier(proposal) == case.tier
    request = getattr(proposal, "request", None)
    if request and case.requires_reason is not None:
        assert request.sealed.requires_reason is case.requires_reason
    if request and case.timeout_minutes is not None:
        waits = request.expires_at - request.opened_at
        assert waits.total_seconds() == case.timeout_minutes * 60
    if request and case.queue:
        assert request.queue.name == case.queue


def test_the_checkpoint_keeps_a_redacted_summary_and_the_hash(desk: Gate) -> None:
    proposal = ask(desk, "process_refund", LAPTOP, checkpoint={"summary": NOTE})
    assert proposal.request.status == "pending"
    assert proposal.request.action_hash.startswith("sha256:")
    assert factories.count_of("casey@example.com") == 0


def test_the_packet_redacts_the_note_and_binds_the_action(desk: Gate) -> None:
    evidence = [{"kind": "message", "text": "Contact casey@example.com after review."}]
    revision = ask(desk, "process_refund", LAPTOP, evidence=evidence).current
    text = revision.evidence[0]["text"]
    assert "casey@example.com" not in text
    assert text.startswith("Contact [e-mail · redacted · #")
    assert revision.action_hash


def test_one_decision_one_effect_and_a_second_click_is_stale(desk: Gate) -> None:
    args = {"order_id": "78201", "amount": "12.00"}
    request = ask(desk, "process_refund", args).request
    seen = factories.said(request, desk.tom)
    decide(request, desk.rita)
    request.refresh_from_db()
    assert request.status == "recallable"
    factories.window_over(request)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    first = record.decrypt_result(Execution.objects.get(pk=execution.pk))
    run.run_execution(execution.pk)
    assert record.decrypt_result(Execution.objects.get(pk=execution.pk)) == first
    with pytest.raises(errors.AlreadyDecided):
        decisions.decide_request(seen)
    assert LogRecord.objects.filter(kind="decision.refused").exists()


def test_before_the_deadline_accepted_and_after_it_not(desk: Gate) -> None:
    fresh = ask(desk, "process_refund", {"amount": "12.00"}).request
    decide(fresh, desk.rita)
    stale = ask(desk, "process_refund", {"amount": "13.00"}, thread="t-2").request
    factories.overdue(stale)
    with pytest.raises(errors.RequestExpired):
        decide(stale, desk.rita)


def test_an_edit_to_449_50_is_enough_and_899_is_not(desk: Gate) -> None:
    request = ask(desk, "process_refund", LAPTOP).request
    assert request.tier == "escalate"
    decide(
        request,
        desk.sue,
        "modify",
        args={**LAPTOP, "amount": "449.50", "partial": True},
    )
    request.refresh_from_db()
    assert (request.status, request.tier) == ("recallable", "approve")


def test_a_larger_edit_needs_escalation(desk: Gate) -> None:
    small = {**LAPTOP, "amount": "40.00"}
    request = ask(desk, "process_refund", small).request
    decide(request, desk.sue, "modify", args=LAPTOP)
    request.refresh_from_db()
    assert (request.status, request.tier) == ("pending", "escalate")


def test_an_edit_that_breaks_the_schema_is_rejected(desk: Gate) -> None:
    request = ask(desk, "process_refund", LAPTOP).request
    with pytest.raises(errors.InvalidArgs):
        decide(request, desk.sue, "modify", args={"amount": -1})


def test_evidence_never_becomes_markup_and_controls_stand_apart() -> None:
    evil = "<script>approveRefund()</script>"
    page = Template("{% load inert %}{% untrusted text %}<button>Approve</button>")
    shown = page.render(Context({"text": evil}))
    assert "<script>" not in shown
    assert html.escape(evil) in shown
    assert shown.count("<button>Approve") == 1


def test_a_wire_tool_that_nobody_declared_waits_for_a_person(desk: Gate) -> None:
    proposal = ask(desk, "wire_money", {"amount": "5000.00", "to": "somebody"})
    assert proposal.request.queue.name == "unknown"
    assert not Execution.objects.exists()


def test_a_finished_case_closes_its_thread(desk: Gate) -> None:
    ask(desk, "process_refund", {"amount": "12.00"})
    proposals.finish_thread(agent=desk.agent, name="t-1", result=ThreadResult.COMPLETED)
    assert Proposal.objects.get().request.status == "withdrawn"


def label(gate: Gate, order: str) -> Proposal:
    args = {"order_id": order, "carrier": "Harrow Parcel"}
    return ask(gate, "create_return_label", args, thread=f"order_{order}")


def test_a_label_inserted_after_approval_never_rides_along(desk: Gate) -> None:
    """The digest of a batch: the reviewed list matches, the longer one does not,
    and what was approved is exactly what was reviewed."""
    for order in ("78291", "78201"):
        label(desk, order)
    formation.form_missed_batches()
    batch = Batch.objects.get()
    reviewed = batching.said(batch, desk.rita)
    assert batching.said(batch, desk.rita).digest == reviewed.digest
    third = label(desk, "78205")
    formation.form_batch_around(third.request.pk)
    inserted = batching.said(batch, desk.rita)
    assert inserted.digest != reviewed.digest
    with pytest.raises(errors.BatchChanged):
        batches.decide_batch(reviewed)
    batching.decide(batch, desk.rita, without=[third.request.pk])
    third.request.refresh_from_db()
    assert third.request.status == "pending"
    assert not Execution.objects.filter(proposal=third).exists()
