"""A hold that another ended: who hears of it, and what marks the decision after it."""

from __future__ import annotations

import pytest

from desk.components import holding
from desk.log.filters import LogFilters, select_records
from journal.models import LogRecord, OutboxMessage
from notifications.events import NOTICE_TITLES
from reviews.holds import rows, take
from reviews.holds.rows import release_hold
from reviews.holds.take import break_hold, offer_hold, take_hold
from reviews.models import ApprovalRequest, Decision, Hold
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def broken(gate: Gate) -> ApprovalRequest:
    """Rita was at it until Sue ended her hold."""
    request = propose(gate.agent).request
    take_hold(request_id=request.pk, person=gate.rita)
    break_hold(request_id=request.pk, person=gate.sue, reason="gone to lunch")
    return request


@pytest.fixture
def given(gate: Gate) -> ApprovalRequest:
    """Rita offered it, and Tom took it."""
    request = propose(gate.agent).request
    take_hold(request_id=request.pk, person=gate.rita)
    offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    take_hold(request_id=request.pk, person=gate.tom, accept=True)
    return request


def now_of(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("proposal").get(pk=request.pk)


def promised(topic: str) -> list[dict[str, object]]:
    return [one.facts for one in OutboxMessage.objects.filter(topic=topic)]


def test_only_the_former_holder_is_told(gate: Gate, broken: ApprovalRequest) -> None:
    said = holding.describe_lost_hold(gate.rita, now_of(broken))
    assert said.startswith("Sue Example ended your claim at ")
    for name in ("sue", "tom", "otto"):
        assert holding.describe_lost_hold(gate.people[name], now_of(broken)) == ""
    assert promised("request.broken") == [{"person": gate.rita.public_id}]
    assert promised("request.handed_over") == []


def test_so_is_whose_offer_was_taken(gate: Gate, given: ApprovalRequest) -> None:
    said = holding.describe_lost_hold(gate.rita, now_of(given))
    assert said.startswith("Tom Example accepted this from you at ")
    assert promised("request.handed_over") == [{"person": gate.rita.public_id}]
    assert promised("request.broken") == []


def test_a_mail_says_it_too(gate: Gate, broken: ApprovalRequest) -> None:
    take_hold(request_id=broken.pk, person=gate.sue)
    drain("request.broken")
    assert told() == [("rita", NOTICE_TITLES["broken"])]


def test_a_mail_says_what_was_taken(gate: Gate, given: ApprovalRequest) -> None:
    drain("request.handed_over")
    assert told() == [("rita", NOTICE_TITLES["handed_over"])]


def test_a_mail_says_that_an_offer_was_declined(gate: Gate) -> None:
    request = propose(gate.agent).request
    offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    take.decline_offer(request_id=request.pk, person=gate.tom)
    drain("request.declined")
    assert told() == [("rita", NOTICE_TITLES["declined"])]


def test_nothing_is_said_of_what_one_gave_back_or_let_lapse(gate: Gate) -> None:
    request = propose(gate.agent).request
    take_hold(request_id=request.pk, person=gate.rita)
    release_hold(request_id=request.pk, person=gate.rita)
    take_hold(request_id=request.pk, person=gate.tom)
    assert holding.describe_lost_hold(gate.rita, now_of(request)) == ""
    assert promised("request.broken") == promised("request.handed_over") == []


def test_who_has_it_again_is_told_nothing(gate: Gate, broken: ApprovalRequest) -> None:
    take_hold(request_id=broken.pk, person=gate.rita)
    assert holding.describe_lost_hold(gate.rita, now_of(broken)) == ""
    decide(broken, gate.rita)
    assert Decision.objects.get().flags == []


@pytest.mark.parametrize("verdict", ["approve", "reject", "escalate"])
def test_the_decision_after_a_break_is_marked(
    gate: Gate, broken: ApprovalRequest, verdict: str
) -> None:
    take_hold(request_id=broken.pk, person=gate.tom)
    decide(broken, gate.tom, verdict)
    assert Decision.objects.get().flags == ["hold_broken"]
    record = LogRecord.objects.get(kind="decision.recorded")
    assert b'"flags":["hold_broken"]' in bytes(record.leaf)


def test_also_without_a_hold_of_ones_own(gate: Gate, broken: ApprovalRequest) -> None:
    decide(broken, gate.sue)
    assert Decision.objects.get().flags == ["hold_broken"]


def test_whoever_had_it_in_between(gate: Gate, broken: ApprovalRequest) -> None:
    """A break is not hidden by handing over what it freed."""
    take_hold(request_id=broken.pk, person=gate.sue)
    offer_hold(request_id=broken.pk, person=gate.sue, to=gate.tom)
    take_hold(request_id=broken.pk, person=gate.tom, accept=True)
    assert Hold.objects.get().broken
    decide(broken, gate.tom)
    assert Decision.objects.get().flags == ["hold_broken"]


def test_only_the_next_decision_is(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    take_hold(request_id=request.pk, person=gate.sam)
    break_hold(request_id=request.pk, person=gate.sue, reason="gone")
    decide(request, gate.sue)
    assert holding.describe_lost_hold(gate.sam, now_of(request)) == ""
    decide(request, gate.sam)
    flags = Decision.objects.order_by("pk").values_list("flags", flat=True)
    assert list(flags) == [["hold_broken"], []]


def test_what_was_handed_over_is_not_marked(gate: Gate, given: ApprovalRequest) -> None:
    decide(given, gate.tom)
    assert Decision.objects.get().flags == []


def test_the_log_finds_the_very_decision(gate: Gate) -> None:
    """Not the other one on the same request."""
    request = propose(gate.agent, amount="899.00").request
    take_hold(request_id=request.pk, person=gate.sam)
    break_hold(request_id=request.pk, person=gate.sue, reason="gone")
    decide(request, gate.sue)
    decide(request, gate.sam)
    found = select_records(gate.otto, LogFilters.read({"flag": "hold_broken"}))
    assert [row.actor_id for row in found] == [gate.sue.public_id]


def test_whose_decision_overrides_a_hold(gate: Gate, broken: ApprovalRequest) -> None:
    hold = Hold.objects.get()
    assert not rows.overrides_broken_hold(None, gate.tom)
    assert not rows.overrides_broken_hold(hold, gate.rita)
    assert rows.overrides_broken_hold(hold, gate.tom)
