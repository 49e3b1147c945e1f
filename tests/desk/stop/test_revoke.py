"""The page that revokes what a reviewer approved, and the ways to it."""

from __future__ import annotations

from typing import Any

import pytest

from hitl import tasks
from journal.models import LogRecord, OutboxMessage
from reviews.choices import Scope
from reviews.executions import run
from reviews.models import Stop
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import read_page, read_text
from tests.reviews import states
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
    page = client.get(url(gate))
    for concern in ("queued", "running", "votes"):
        assert read_text(page, concern).startswith("1 "), concern
    assert 'data-fate="before"' in read_page(page)
    assert "Propose reversal…" in read_page(page)
    response = client.post(url(gate), {"reason": "stolen laptop"}, follow=True)
    assert 'data-state="revoking"' in read_page(response)
    row = Stop.objects.get()
    assert (row.scope, row.reason) == (Scope.REVIEWER, "stolen laptop")
    enforce()
    page = client.get(f"/stop/{row.pk}/")
    figures = "1 cancelled, 1 in need of another approval, 1 still running."
    assert read_text(page, "figures") == figures
    assert 'data-fate="asked"' in read_page(page)
    assert read_text(page, "before").startswith("1 ")


def test_it_is_over_when_nothing_of_it_runs(gate: Gate, as_: SignIn) -> None:
    states.queued(gate)
    client = as_("adam")
    client.post(url(gate), {"reason": "stolen"})
    enforce()
    page = client.get(f"/stop/{Stop.objects.get().pk}/")
    assert 'data-state="revoked"' in read_page(page)
    assert read_text(page, "figures") == "1 cancelled."
    source = read_page(client.get(url(gate)))
    assert 'data-testid="stopped"' in source
    assert 'data-testid="revoke-form"' not in source
    assert client.post(url(gate), {"reason": "again"}).status_code == 409


def test_a_vote_on_what_is_open_is_a_number_and_no_name(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent, amount="700.00").request
    decide(request, gate.sam)
    page = as_("sue").get(url(gate, "sam"))
    source = read_page(page)
    assert read_text(page, "votes").startswith("1 ")
    assert request.pk not in source
    assert "/threads/riley/t-1/" not in source


def test_a_reason_is_needed_and_ones_own_are_for_others(
    gate: Gate, as_: SignIn
) -> None:
    response = as_("sue").post(url(gate), {"reason": " "})
    assert response.status_code == 422
    assert 'id="reason-error"' in read_page(response)
    source = read_page(as_("sue").get(url(gate, "sue")))
    assert 'data-testid="own"' in source
    assert 'data-testid="revoke-form"' not in source
    refused = as_("sue").post(url(gate, "sue"), {"reason": "it was me"})
    assert refused.status_code == 403
    assert "it was me" in read_page(refused)
    assert not Stop.objects.exists()


def test_who_comes_second_keeps_their_words(gate: Gate, as_: SignIn) -> None:
    as_("sam").post(url(gate), {"reason": "stolen"})
    page = as_("sue").post(url(gate), {"reason": "stolen, says IT"})
    assert page.status_code == 409
    assert "stolen, says IT" in read_page(page)


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
    assert url(gate) in read_page(as_("sue").get(path))
    assert url(gate) not in read_page(as_("otto").get(path))
    assert url(gate) in read_page(as_("sue").get("/stop/"))
    assert url(gate, "sue") not in read_page(as_("sue").get("/stop/"))
    assert "/revoke/" not in read_page(as_("rita").get("/stop/"))


def test_no_more_queries_however_much_it_is(
    gate: Gate, as_: SignIn, django_assert_num_queries: Any
) -> None:
    client = as_("sue")
    states.queued(gate)
    states.succeeded(gate)
    client.get(url(gate))
    with django_assert_num_queries(18):
        client.get(url(gate))
    for number in range(6):
        request = propose(gate.agent, customer=f"C-{number + 10}").request
        decide(request, gate.rita)
        if number % 2:
            run.run_execution(request.proposal.executions.get().pk)
    client.get(url(gate))
    with django_assert_num_queries(18):
        client.get(url(gate))
