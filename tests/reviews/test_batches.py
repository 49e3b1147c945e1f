"""Batches: who belongs together, one decision bound to the exact list, and item after
item run (gate.md 6; the operations that ux.md 4.3 shows)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent
from journal import clock, errors
from journal.models import LogRecord
from policies.models import Person
from reviews import (
    batches,
    deadlines,
    executions,
    forming,
    leases,
    recalls,
    stops,
)
from reviews.choices import BatchStatus, ExecutionStatus, RequestStatus, Scope
from reviews.models import ApprovalRequest, Batch, BatchItem, Decision, Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states
from tests.reviews.batching import decide, formed, members, proposed, ran, said


def statuses() -> list[str]:
    return list(ApprovalRequest.objects.order_by("pk").values_list("status", flat=True))


# Forming.
def test_alike_requests_are_put_together(gate: Gate) -> None:
    batch = formed(gate)
    assert batch.status == BatchStatus.FORMING
    assert [item.position for item in batch.items.all()] == [1, 2, 3]
    assert batch.closes_at - batch.formed_at <= forming.WINDOW
    assert (
        LogRecord.objects.filter(kind__in=["batch.formed", "batch.joined"]).count() == 2
    )


def test_one_alone_is_no_batch(gate: Gate) -> None:
    proposed(gate, "7.00")
    assert forming.form_all() == []


def test_a_later_one_joins_until_the_window_is_over(gate: Gate) -> None:
    batch = formed(gate)
    later = proposed(gate, "9.00")[0]
    assert forming.form_around(later.pk) == [batch.pk]
    past = clock.now() - timedelta(seconds=1)
    Batch.objects.update(closes_at=past)
    forming.tidy(batch_id=batch.pk)
    batch.refresh_from_db()
    assert batch.status == BatchStatus.OPEN
    last = proposed(gate, "9.00")[0]
    assert forming.form_around(last.pk) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": "200.01"},  # above the ceiling of one
        {"args": {"customer": "C", "amount": "9.00", "currency": "EUR"}},
        {"tool": "pay"},  # its tool is not batchable
        {"uncertain": True},  # another rule
        {
            "args": {
                "customer": "C",
                "amount": "9.00",
                "currency": "USD",
                "note": "another shape",
            }
        },
    ],
)
def test_what_is_not_alike_stays_alone(gate: Gate, fields: dict[str, Any]) -> None:
    batch = formed(gate)
    odd = propose(
        gate.agent, **{"tool": "repay", "customer": "C-odd", **fields}
    ).request
    forming.form_around(odd.pk)
    assert odd.pk not in batch.items.values_list("request", flat=True)


def test_another_agent_has_batches_of_its_own(gate: Gate) -> None:
    other: Agent = factories.agent(gate.owen, "otis")
    proposed(gate, "7.00")
    propose(other, "repay", customer="C-9")
    assert forming.form_all() == []


def test_what_needs_two_people_or_a_password_is_decided_alone(gate: Gate) -> None:
    batch = formed(gate)
    request = proposed(gate, "9.00")[0]
    forming.form_all()
    factories.decide(request, gate.rita, "escalate")
    assert request.pk not in [member.id for member in members(batch)]


def test_the_agents_group_is_a_batch_without_a_window(gate: Gate) -> None:
    old = proposed(gate, "7.00", group="task-77")[0]
    earlier = clock.now() - 2 * forming.WINDOW
    worlds.rewrite(type(old.sealed), old.sealed.pk, created_at=earlier)
    proposed(gate, "8.00", group="task-77")
    proposed(gate, "9.00", group="task-78")
    forming.form_all()
    assert Batch.objects.get().group == "task-77"
    assert len(members(Batch.objects.get())) == 2


def test_the_ceiling_of_a_batch_bounds_its_forming(gate: Gate) -> None:
    batch = formed(gate, *["200.00"] * 26)
    assert len(members(batch)) == 25  # 5,000.00 in all


# Leaving.
def test_who_leaves_is_seen_from_the_members(gate: Gate) -> None:
    batch = formed(gate, *["7.00"] * 5)
    one, two, three = members(batch)[:3]
    factories.decide(one.request, gate.rita)
    factories.overdue(two.request)
    states.withdraw(gate.agent, three.request.proposal)
    assert len(members(batch)) == 2
    assert forming.tidy(batch_id=batch.pk)
    assert batch.items.filter(left_at__isnull=False).count() == 3


def test_a_batch_of_one_is_dissolved(gate: Gate) -> None:
    batch = formed(gate, "7.00", "8.00")
    factories.decide(members(batch)[0].request, gate.rita)
    forming.tidy_all()
    batch.refresh_from_db()
    assert batch.status == BatchStatus.DISSOLVED
    with pytest.raises(errors.BatchChanged):
        batches.decide(said(batch, gate.rita, items=["r-1"], digest="none"))


def test_a_replacement_that_is_still_alike_stays_and_changes_the_digest(
    gate: Gate,
) -> None:
    batch = formed(gate)
    before = said(batch, gate.rita)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    after = said(batch, gate.rita)
    assert after.items == before.items
    assert after.digest != before.digest


def test_a_replacement_above_the_ceiling_leaves(gate: Gate) -> None:
    batch = formed(gate)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "270.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    assert member.id not in [one.id for one in members(batch)]


# Deciding.
def test_all_are_approved_by_one_decision_each(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    batches.decide(meant)
    batch.refresh_from_db()
    assert (batch.status, batch.digest) == (BatchStatus.DECIDED, meant.digest)
    assert set(statuses()) == {RequestStatus.AUTHORIZED}
    for place, decision in enumerate(Decision.objects.order_by("pk"), 1):
        assert decision.flags == ["batch"]
        assert decision.authority["batch"] == batch.pk
        assert decision.authority["digest"] == meant.digest
        assert decision.authority["position"] == place
    assert LogRecord.objects.filter(kind="batch.decided").count() == 1
    assert LogRecord.objects.filter(kind="decision.recorded").count() == 3
    places = Execution.objects.order_by("batch_position")
    assert list(places.values_list("batch_position", flat=True)) == [1, 2, 3]


def test_a_recall_window_holds_all_of_them(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    assert set(statuses()) == {RequestStatus.RECALLABLE}
    assert batches.recall_all(batch_id=batch.pk, person=gate.rita) == 3
    assert set(statuses()) == {RequestStatus.PENDING}
    assert not Execution.objects.exists()
    forming.form_all()
    assert Batch.objects.filter(status=BatchStatus.FORMING).count() == 1
    with pytest.raises(errors.Running):
        batches.recall_all(batch_id=batch.pk, person=gate.rita)


def test_after_the_window_all_run_in_their_order(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.update(recall_until=past)
    deadlines.close_recall_windows()
    assert ran(batch) == [ExecutionStatus.SUCCEEDED] * 3
    assert [args["customer"] for _, _, args in worlds.effects()] == [
        "C-0",
        "C-1",
        "C-2",
    ]


def test_one_recalled_alone_may_be_put_with_others_again(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    request = batch.items.get(position=1).request
    recalls.recall(request_id=request.pk, person=gate.rita)
    forming.tidy_all()
    assert BatchItem.objects.get(request=request).left_at is not None
    factories.decide(request, gate.rita)
    factories.window_over(request)
    alone = Execution.objects.get(proposal=request.proposal_id)
    assert alone.batch_id is None


def test_all_are_rejected_with_one_reason(gate: Gate) -> None:
    decide(formed(gate), gate.rita, "reject", reason_code="duplicate")
    assert set(statuses()) == {RequestStatus.REJECTED}
    assert set(Decision.objects.values_list("reason_code", flat=True)) == {"duplicate"}


def test_a_rejection_needs_a_reason(gate: Gate) -> None:
    batch = formed(gate)
    with pytest.raises(errors.Reason):
        decide(batch, gate.rita, "reject", reason_code="")
    assert set(statuses()) == {RequestStatus.PENDING}


def test_what_is_left_out_goes_back_to_the_queue(gate: Gate) -> None:
    batch = formed(gate, *["7.00"] * 4)
    out = [member.id for member in members(batch)[:2]]
    decide(batch, gate.rita, without=out)
    left = ApprovalRequest.objects.filter(pk__in=out)
    assert set(left.values_list("status", flat=True)) == {RequestStatus.PENDING}
    assert Execution.objects.count() == 2
    assert forming.form_all() == []  # they were to be looked at alone
    factories.decide(left[0], gate.rita)


def refused(meant: Any) -> errors.BatchChanged:
    before = statuses()
    with pytest.raises(errors.BatchChanged) as found:
        batches.decide(meant)
    assert statuses() == before
    assert not Decision.objects.filter(flags__contains=["batch"]).exists()
    assert LogRecord.objects.filter(kind="batch.refused").count() == 1
    return found.value


def test_an_item_changed_in_between_means_nothing_is_decided(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    error = refused(meant)
    assert [one["path"] for one in error.errors] == [member.id]
    assert error.detail.startswith("1 of 3 items changed or expired")
    batches.decide(said(batch, gate.rita))
    assert set(statuses()) == {RequestStatus.AUTHORIZED}


def test_an_item_inserted_in_between_means_nothing_is_decided(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    later = proposed(gate, "9.00")[0]
    forming.form_around(later.pk)
    assert [one["path"] for one in refused(meant).errors] == [later.pk]


def test_an_item_expired_or_decided_in_between_means_nothing_is_decided(
    gate: Gate,
) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    one, two, _ = members(batch)
    factories.overdue(one.request)
    factories.decide(two.request, gate.tom, "reject")
    assert [found["path"] for found in refused(meant).errors] == [one.id, two.id]


@pytest.mark.parametrize("change", ["order", "double", "one less", "digest", "none"])
def test_another_list_than_the_digests_decides_nothing(gate: Gate, change: str) -> None:
    batch = formed(gate)
    items = said(batch, gate.rita).items
    changes: dict[str, dict[str, Any]] = {
        "order": {"items": list(reversed(items))},
        "double": {"items": [*items, items[0]]},
        "one less": {"items": items[1:]},
        "digest": {"digest": "sha256:" + "0" * 64},
        "none": {"items": []},
    }
    with pytest.raises((errors.Invalid, errors.BatchChanged)):
        decide(batch, gate.rita, **changes[change])
    assert set(statuses()) == {RequestStatus.PENDING}
    assert not Decision.objects.exists()


def test_it_is_decided_once(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.tom)
    decide(batch, gate.rita)
    with pytest.raises(errors.Decided):
        batches.decide(meant)


# Who may: the same checks as for one alone.
@pytest.mark.parametrize("name", ["adam", "otto", "owen"])
def test_who_never_decides_decides_no_batch(gate: Gate, name: str) -> None:
    batch = formed(gate)
    with pytest.raises(errors.NotYours):
        decide(batch, gate.people[name])
    assert not Decision.objects.exists()


def test_one_barred_item_refuses_all_and_is_named(gate: Gate) -> None:
    batch = formed(gate)
    own = members(batch)[2]
    barred = [gate.rita.public_id]
    type(own.request.proposal).objects.filter(pk=own.request.proposal_id).update(
        barred=barred
    )
    with pytest.raises(errors.NotYours) as found:
        decide(batch, gate.rita)
    assert [one["path"] for one in found.value.errors] == [own.id]
    decide(batch, gate.rita, without=[own.id])


def test_a_persons_ceiling_counts_for_each_item(gate: Gate) -> None:
    Person.objects.filter(pk=gate.rita.pk).update(
        ceiling_minor=2000, ceiling_currency="USD"
    )
    batch = formed(gate)
    with pytest.raises(errors.NotYours):
        decide(batch, gate.rita)


def test_the_tools_ceiling_counts_for_the_whole(gate: Gate) -> None:
    batch = formed(gate, *["190.00"] * 26)
    for member in members(batch):  # replaced by more than the forming let in
        args = {**member.version.revision.args, "amount": "199.00"}
        factories.revised(gate.agent, member.request.proposal, args)
    with pytest.raises(errors.Policy):
        decide(batch, gate.rita)
    decide(batch, gate.rita, without=[members(batch)[0].id])


def test_what_another_holds_is_not_decided(gate: Gate) -> None:
    batch = formed(gate)
    held = members(batch)[0]
    leases.take(request_id=held.id, person=gate.tom)
    with pytest.raises(errors.Held) as found:
        decide(batch, gate.rita)
    assert [one["path"] for one in found.value.errors] == [held.id]
    decide(batch, gate.rita, without=[held.id])


def test_a_stopped_run_keeps_the_batch_from_being_decided(gate: Gate) -> None:
    batch = formed(gate)
    stops.stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    with pytest.raises(errors.Withdrawn):
        decide(batch, gate.rita)


# Running.
def failing(gate: Gate, *customers: str) -> Batch:
    worlds.WORLD["declined"] = set(customers)
    return decide(formed(gate, *["7.00"] * 5), gate.rita)


def test_the_first_failure_keeps_the_rest_from_running(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    done, no, waits = "succeeded", "failed", "queued"
    assert ran(batch) == [done, no, waits, waits, waits]
    batch.refresh_from_db()
    assert batch.halted_at is not None
    assert deadlines.queued_executions(quiet=timedelta(0)) == []


def test_the_rest_runs_when_a_person_says_so(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    batches.run_rest(batch_id=batch.pk, person=gate.tom)
    assert ran(batch) == ["succeeded", "failed", *["succeeded"] * 3]
    with pytest.raises(errors.Conflict):
        batches.run_rest(batch_id=batch.pk, person=gate.tom)


def test_only_what_failed_is_tried_again_under_the_same_key(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    keys = {key for _, key, _ in worlds.effects()}
    worlds.WORLD["declined"] = set()
    assert batches.retry_failed(batch_id=batch.pk, person=gate.rita) == 1
    assert ran(batch) == ["succeeded"] * 5
    assert len(worlds.effects()) == 5
    assert keys < {key for _, key, _ in worlds.effects()}


def test_without_stopping_every_item_runs(gate: Gate) -> None:
    worlds.WORLD["declined"] = {"C-1"}
    batch = decide(formed(gate, *["7.00"] * 5), gate.rita, stop_at_failure=False)
    assert ran(batch) == ["succeeded", "failed", *["succeeded"] * 3]


def test_what_waits_behind_a_failure_never_runs_after_its_window(gate: Gate) -> None:
    batch = failing(gate, "C-0")
    ran(batch)
    past = clock.now() - timedelta(seconds=1)
    for execution in Execution.objects.filter(batch=batch):
        type(execution.grant).objects.filter(pk=execution.grant_id).update(
            expires_at=past
        )
    assert ran(batch) == ["failed", *["refused"] * 4]
    with pytest.raises(errors.GrantExpired):
        batches.retry_failed(batch_id=batch.pk, person=gate.rita)


def test_strangers_neither_recall_nor_run_nor_retry(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    for operation in (batches.run_rest, batches.retry_failed):
        with pytest.raises(errors.NotYours):
            operation(batch_id=batch.pk, person=gate.otto)
        with pytest.raises(errors.NotFound):
            operation(batch_id="b-0", person=gate.rita)


def test_an_execution_outside_any_batch_waits_for_nobody(gate: Gate) -> None:
    batch = failing(gate, "C-0")
    ran(batch)
    alone = states.queued(gate)
    assert deadlines.queued_executions(quiet=timedelta(0)) == [alone.pk]
    executions.run(alone.pk)
    alone.refresh_from_db()
    assert alone.status == ExecutionStatus.SUCCEEDED


def test_an_unknown_verdict_is_no_verdict_on_many(gate: Gate) -> None:
    batch = formed(gate)
    with pytest.raises(errors.Invalid):
        decide(batch, gate.rita, "escalate")
