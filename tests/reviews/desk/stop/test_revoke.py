"""The page that revokes what a reviewer approved, and the ways to it."""

from __future__ import annotations

from typing import Any

import pytest

from journal.models import LogRecord, OutboxMessage
from reviews import tasks
from reviews.choices import Scope
from reviews.executions import run
from reviews.models import Stop
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.desk.conftest import SignIn
from tests.reviews.states import recall_windows


def url(gate: Gate, name: str = "rita") -> str:
    return f"/reviewers/{gate.people[name].public_id}/revoke/"


def enforce() -> None:
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)


def test_it_says_what_it_concerns_and_then_does_it(gate: Gate, as_: SignIn) -> None:
    states.queued(gate)
    states.claimed(gate, "pay_queryable")
    states.succeeded(gate)
    recall_windows(gate)
    decide(propose(gate.agent, customer="C-5").request, gate.rita)
    client = as_("sue")
    source = client.get(url(gate)).content.decode()
    assert "1 authorized and queued: grant revoked" in source
    assert "1 running just now" in source
    assert "1 open request with their vote: the vote is void" in source
    assert "Had finished before" in source
    assert "Propose reversal…" in source
    response = client.post(url(gate), {"reason": "stolen laptop"}, follow=True)
    assert "Revoking…" in response.content.decode()
    row = Stop.objects.get()
    assert (row.scope, row.reason) == (Scope.REVIEWER, "stolen laptop")
    enforce()
    source = client.get(f"/stop/{row.pk}/").content.decode()
    assert "1 cancelled, 1 asked again of others, 1 still running" in source
    assert "Asked again of others: this vote is void" in source
    assert "1 had finished in the month before it" in source


def test_it_is_over_when_nothing_of_it_runs(gate: Gate, as_: SignIn) -> None:
    states.queued(gate)
    client = as_("adam")
    client.post(url(gate), {"reason": "stolen"})
    enforce()
    source = client.get(f"/stop/{Stop.objects.get().pk}/").content.decode()
    assert '<p class="note-title">Revoked ' in source
    assert "1 cancelled." in source
    source = client.get(url(gate)).content.decode()
    assert "What came of it" in source
    assert 'data-testid="revoke-form"' not in source
    assert client.post(url(gate), {"reason": "again"}).status_code == 409


def test_a_vote_on_what_is_open_is_a_number_and_no_name(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent, amount="700.00").request
    decide(request, gate.sam)
    source = as_("sue").get(url(gate, "sam")).content.decode()
    assert "1 open request with their vote" in source
    assert request.pk not in source
    assert "/threads/riley/t-1/" not in source


def test_a_reason_is_needed_and_ones_own_are_for_others(
    gate: Gate, as_: SignIn
) -> None:
    response = as_("sue").post(url(gate), {"reason": " "})
    assert response.status_code == 422
    assert "Say why." in response.content.decode()
    source = as_("sue").get(url(gate, "sue")).content.decode()
    assert "must be revoked by someone else" in source
    refused = as_("sue").post(url(gate, "sue"), {"reason": "it was me"})
    assert refused.status_code == 403
    assert "it was me" in refused.content.decode()
    assert not Stop.objects.exists()


def test_who_comes_second_keeps_their_words(gate: Gate, as_: SignIn) -> None:
    as_("sam").post(url(gate), {"reason": "stolen"})
    page = as_("sue").post(url(gate), {"reason": "stolen, says IT"})
    assert page.status_code == 409
    assert "stolen, says IT" in page.content.decode()


@pytest.mark.parametrize("name", ["tom", "otto", "owen"])
def test_for_others_it_is_not_there(gate: Gate, as_: SignIn, name: str) -> None:
    assert as_(name).get(url(gate)).status_code == 404
    assert as_(name).post(url(gate), {"reason": "x"}).status_code == 404


def test_nobody_and_who_never_decides_have_no_page(gate: Gate, as_: SignIn) -> None:
    client = as_("sue")
    assert client.get("/reviewers/u-nobody/revoke/").status_code == 404
    assert client.get(url(gate, "owen")).status_code == 404
    assert client.put(url(gate)).status_code == 405


def test_the_log_and_the_stop_page_lead_there(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    record = LogRecord.objects.get(kind="decision.recorded")
    path = f"/log/new/{record.pk}/"
    assert url(gate) in as_("sue").get(path).content.decode()
    assert url(gate) not in as_("otto").get(path).content.decode()
    assert url(gate) in as_("sue").get("/stop/").content.decode()
    assert url(gate, "sue") not in as_("sue").get("/stop/").content.decode()
    assert "/revoke/" not in as_("rita").get("/stop/").content.decode()


def test_no_more_queries_however_much_it_is(
    gate: Gate, as_: SignIn, django_assert_num_queries: Any
) -> None:
    client = as_("sue")
    states.queued(gate)
    states.succeeded(gate)
    client.get(url(gate))
    with django_assert_num_queries(19):
        client.get(url(gate))
    for number in range(6):
        request = propose(gate.agent, customer=f"C-{number + 10}").request
        decide(request, gate.rita)
        if number % 2:
            run.run_execution(request.proposal.executions.get().pk)
    client.get(url(gate))
    with django_assert_num_queries(19):
        client.get(url(gate))
