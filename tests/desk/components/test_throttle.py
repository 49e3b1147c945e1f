"""Who approves without end is asked to pause; what stops an effect never is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from desk.components import throttle
from journal import clock
from reviews.choices import BatchStatus
from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.conftest import Gate
from tests.desk.batches.batch_form import Form
from tests.desk.conftest import SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import propose
from tests.markup import read_page
from tests.reviews.batches import batching

MOST = 2


@pytest.fixture
def brisk(gate: Gate) -> Gate:
    """Nobody approves more than twice in ten minutes."""
    document = factories.document_of_tests()
    document["desk"]["most_decisions"] = MOST
    factories.policy(gate.people, document)
    return gate


def asked(gate: Gate, number: int) -> ApprovalRequest:
    return propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}").request


def commit(client: Client, request: ApprovalRequest, verdict: str) -> Any:
    sent = panel(request, verdict, reason="sure")
    sent["reason_code"] = factories.reason_for(verdict)
    return client.post(url(request, "decide"), sent)


def test_one_approval_too_many_waits_with_the_note_kept(
    brisk: Gate, as_: SignIn
) -> None:
    rita = as_("rita")
    for number in range(MOST):
        assert commit(rita, asked(brisk, number), "approve").status_code == 303
    third = asked(brisk, MOST)
    answer = commit(rita, third, "approve")
    source = read_page(answer)
    assert answer.status_code == 429
    assert 'data-code="throttle"' in source
    assert "sure" in source
    assert not Decision.objects.filter(request=third).exists()
    assert commit(rita, third, "reject").status_code == 303


def test_it_is_over_after_ten_minutes(brisk: Gate, as_: SignIn) -> None:
    for number in range(MOST):
        commit(as_("rita"), asked(brisk, number), "approve")
    now = clock.now()
    assert throttle.find_rate_refusal(brisk.rita, most=MOST, now=now) is not None
    assert throttle.find_rate_refusal(brisk.tom, most=MOST, now=now) is None
    assert throttle.find_rate_refusal(brisk.rita, most=0, now=now) is None
    later = now + timedelta(minutes=10)
    assert throttle.find_rate_refusal(brisk.rita, most=MOST, now=later) is None


def test_a_batch_is_one_decision(brisk: Gate) -> None:
    batching.decide(batching.formed(brisk), brisk.rita)
    assert Decision.objects.count() > MOST
    assert throttle.find_rate_refusal(brisk.rita, most=MOST, now=clock.now()) is None


def test_a_batch_waits_too(brisk: Gate, as_: SignIn) -> None:
    rita = as_("rita")
    for number in range(MOST):
        commit(rita, asked(brisk, number), "approve")
    batch = batching.formed(brisk)
    form = Form(rita, batch).open_samples().press("arm:approve").press("commit")
    assert form.status == 429
    assert "Nothing was recorded." in form.text
    batch.refresh_from_db()
    assert batch.status != BatchStatus.DECIDED
    form.press("arm:reject").press("commit", reason_code="not_needed")
    assert form.status == 303
