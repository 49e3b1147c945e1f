"""One decision bound to the exact list: all of it or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from journal import errors
from journal.models import LogRecord
from policies.models import Person
from reviews.batches import decide as batches
from reviews.batches import formation
from reviews.choices import BatchStatus, RequestStatus, Scope
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, Execution
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.reviews.batches.batching import (
    decide,
    formed,
    members,
    proposed,
    said,
    statuses,
)


def test_all_are_approved_by_one_decision_each(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    batches.decide_batch(meant)
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


def test_all_are_rejected_with_one_reason(gate: Gate) -> None:
    decide(formed(gate), gate.rita, "reject", reason_code="duplicate")
    assert set(statuses()) == {RequestStatus.REJECTED}
    assert set(Decision.objects.values_list("reason_code", flat=True)) == {"duplicate"}


def test_a_rejection_needs_a_reason(gate: Gate) -> None:
    batch = formed(gate)
    with pytest.raises(errors.ReasonMissing):
        decide(batch, gate.rita, "reject", reason_code="")
    assert set(statuses()) == {RequestStatus.PENDING}


def test_what_is_left_out_goes_back_to_the_queue(gate: Gate) -> None:
    batch = formed(gate, *["7.00"] * 4)
    out = [member.id for member in members(batch)[:2]]
    decide(batch, gate.rita, without=out)
    left = ApprovalRequest.objects.filter(pk__in=out)
    assert set(left.values_list("status", flat=True)) == {RequestStatus.PENDING}
    assert Execution.objects.count() == 2
    assert formation.form_missed_batches() == []  # they were to be looked at alone
    factories.decide(left[0], gate.rita)


def refused(meant: Any) -> errors.BatchChanged:
    before = statuses()
    with pytest.raises(errors.BatchChanged) as found:
        batches.decide_batch(meant)
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
    assert error.detail.startswith("1 of 3 items ")
    batches.decide_batch(said(batch, gate.rita))
    assert set(statuses()) == {RequestStatus.AUTHORIZED}


def test_an_item_inserted_in_between_means_nothing_is_decided(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    later = proposed(gate, "9.00")[0]
    formation.form_batch_around(later.pk)
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


def test_a_reason_fits_the_verdict_on_many(gate: Gate) -> None:
    batch = formed(gate)
    for verdict, code in [("approve", "duplicate"), ("reject", "verified")]:
        with pytest.raises(errors.ReasonMissing):
            decide(batch, gate.rita, verdict, reason_code=code)
    assert not Decision.objects.exists()


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
    with pytest.raises((errors.InvalidInput, errors.BatchChanged)):
        decide(batch, gate.rita, **changes[change])
    assert set(statuses()) == {RequestStatus.PENDING}
    assert not Decision.objects.exists()


def test_it_is_decided_once(gate: Gate) -> None:
    batch = formed(gate)
    meant = said(batch, gate.tom)
    decide(batch, gate.rita)
    with pytest.raises(errors.AlreadyDecided):
        batches.decide_batch(meant)


# Who may: the same checks as for one alone.
@pytest.mark.parametrize("name", ["adam", "otto", "owen"])
def test_who_never_decides_decides_no_batch(gate: Gate, name: str) -> None:
    batch = formed(gate)
    with pytest.raises(errors.NotPermitted):
        decide(batch, gate.people[name])
    assert not Decision.objects.exists()


def test_one_barred_item_refuses_all_and_is_named(gate: Gate) -> None:
    batch = formed(gate)
    own = members(batch)[2]
    barred = [*own.request.proposal.barred, gate.rita.public_id]
    type(own.request.proposal).objects.filter(pk=own.request.proposal_id).update(
        barred=barred
    )
    with pytest.raises(errors.NotPermitted) as found:
        decide(batch, gate.rita)
    assert [one["path"] for one in found.value.errors] == [own.id]
    decide(batch, gate.rita, without=[own.id])


def test_a_persons_ceiling_counts_for_each_item(gate: Gate) -> None:
    Person.objects.filter(pk=gate.rita.pk).update(
        ceiling_minor=2000, ceiling_currency="USD"
    )
    batch = formed(gate)
    with pytest.raises(errors.NotPermitted):
        decide(batch, gate.rita)


def test_the_tools_ceiling_counts_for_the_whole(gate: Gate) -> None:
    batch = formed(gate, *["190.00"] * 26)
    for member in members(batch):  # replaced by more than the forming let in
        args = {**member.version.revision.args, "amount": "199.00"}
        factories.revised(gate.agent, member.request.proposal, args)
    with pytest.raises(errors.PolicyViolation):
        decide(batch, gate.rita)
    decide(batch, gate.rita, without=[members(batch)[0].id])


def test_what_another_holds_is_not_decided(gate: Gate) -> None:
    batch = formed(gate)
    held = members(batch)[0]
    take.take_hold(request_id=held.id, person=gate.tom)
    with pytest.raises(errors.HeldByAnother) as found:
        decide(batch, gate.rita)
    assert [one["path"] for one in found.value.errors] == [held.id]
    decide(batch, gate.rita, without=[held.id])


def test_a_stopped_run_keeps_the_batch_from_being_decided(gate: Gate) -> None:
    batch = formed(gate)
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    with pytest.raises(errors.RequestWithdrawn):
        decide(batch, gate.rita)


def test_an_edit_is_no_verdict_on_many(gate: Gate) -> None:
    batch = formed(gate)
    with pytest.raises(errors.InvalidInput):
        decide(batch, gate.rita, "modify")
    assert not Decision.objects.exists()


# Escalating.
def test_all_are_escalated_and_decided_alone_from_then_on(gate: Gate) -> None:
    batch = formed(gate, *["7.00"] * 4)
    out = members(batch)[0].id
    decide(batch, gate.rita, "escalate", reason_code="unsafe", without=[out])
    asked = ApprovalRequest.objects.exclude(pk=out)
    assert set(asked.values_list("status", "tier", "version")) == {
        (RequestStatus.PENDING, "escalate", 2)
    }
    assert set(Decision.objects.values_list("verdict", "counts")) == {
        ("escalate", False)
    }
    assert LogRecord.objects.filter(kind="request.escalated").count() == 3
    formation.tidy_open_batches()
    assert formation.form_missed_batches() == []
    assert batch.items.filter(left_at__isnull=True).count() == 3
    with pytest.raises(errors.AlreadyEscalated):
        factories.decide(asked[0], gate.rita)
    factories.decide(asked[0], gate.sue)


def test_escalating_needs_a_reason_and_is_all_or_nothing(gate: Gate) -> None:
    batch = formed(gate)
    with pytest.raises(errors.ReasonMissing):
        decide(batch, gate.rita, "escalate", reason_code="")
    meant = said(batch, gate.rita, "escalate", reason_code="unsafe")
    factories.overdue(members(batch)[2].request)
    with pytest.raises(errors.BatchChanged):
        batches.decide_batch(meant)
    assert not Decision.objects.exists()
