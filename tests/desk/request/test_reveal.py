"""`/requests/<id>/reveal/`: who may see a hidden value sees it for a minute, the log
says that they did, and the value is nowhere else."""

from __future__ import annotations

import pytest
from django.test import Client

from journal.models import LogRecord
from policies.models import Person
from reviews.models import ApprovalRequest
from tests import factories, pages
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import propose
from tests.markup import read_page

SECRET = "C-7-Very-Private <b>&"
ASKED = {"name": "customer", "reason_code": "decide"}


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    document = factories.document_of_tests()
    document["tools"]["pay_queryable"]["sensitive"] = ["customer", "note"]
    factories.policy(gate.people, document)
    args = {"customer": SECRET, "amount": "40.00", "currency": "USD"}
    return propose(gate.agent, "pay_queryable", args=args).request


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_supervisor_sees_it_for_a_minute_and_the_log_says_so(
    request_, as_: SignIn, headers: dict[str, str]
) -> None:
    client = as_("sue", **headers)
    offered = read_page(client.get(url(request_, "reveal")))
    assert "Reveal Customer" in offered
    assert "Reveal Note" not in offered  # it is not given
    response = client.post(url(request_, "reveal"), ASKED)
    source = read_page(response)
    assert "C-7-Very-Private" in source
    assert "<b>&" not in source
    assert response["Cache-Control"] == "no-store"
    assert response["Refresh"] == f"60; url={url(request_, 'reveal')}"
    assert 'hx-trigger="load delay:60s"' in source
    assert "C-7-Very-Private" not in read_page(client.get(url(request_, "reveal")))
    record = LogRecord.objects.get(kind="value.revealed")
    assert b"C-7-Very" not in bytes(record.leaf)
    assert b'"argument":"customer"' in bytes(record.leaf)
    assert (record.request, record.actor_id) == (
        request_.pk,
        Person.objects.get(username="sue").public_id,
    )


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_without_the_grant_there_is_nothing_to_reveal(
    request_, as_: SignIn, name: str
) -> None:
    client = as_(name)
    assert "reveal/" not in read_page(client.get(url(request_)))
    assert client.get(url(request_, "reveal")).status_code == 404
    assert client.post(url(request_, "reveal"), ASKED).status_code == 404
    assert not LogRecord.objects.filter(kind="value.revealed").exists()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"reason_code": ""}, "Choose why you need to see it."),
        ({"reason_code": "curious"}, "Choose why you need to see it."),
        ({"reason_code": "other", "reason": " "}, "Enter why you need to see it."),
    ],
)
def test_a_reason_is_asked_for_and_what_was_typed_stays(
    request_, as_: SignIn, sent: dict[str, str], said: str
) -> None:
    typed = {**ASKED, "reason": "typed", **sent}
    response = as_("sue").post(url(request_, "reveal"), typed)
    source = read_page(response)
    assert response.status_code == 422
    assert said in source
    assert typed["reason"] in source
    # The error stands at the field that is wrong.
    assert ('aria-invalid="true"' in source) == (said[:5] == "Enter")
    assert "C-7-Very-Private" not in source
    assert not LogRecord.objects.filter(kind="value.revealed").exists()


@pytest.mark.parametrize("name", ["amount", "nothing", "", "customer.x"])
def test_only_what_is_hidden_can_be_revealed(request_, as_: SignIn, name: str) -> None:
    response = as_("sue").post(url(request_, "reveal"), {**ASKED, "name": name})
    assert response.status_code == 404


def test_nothing_hidden_nothing_offered(gate: Gate, as_: SignIn) -> None:
    plain = propose(gate.agent).request
    assert as_("sue").get(url(plain, "reveal")).status_code == 404


def test_a_look_changes_no_page_and_no_digest(request_, as_: SignIn) -> None:
    client = as_("sue")
    before = pages.seen(request_, "sue").digest
    client.post(url(request_, "reveal"), ASKED)
    source = read_page(client.get(url(request_)))
    assert "C-7-Very-Private" not in source
    assert pages.seen(request_, "sue").digest == before
    sent = panel(request_, "approve", "sue")
    assert client.post(url(request_, "decide"), sent).status_code == 303


def test_it_needs_the_forms_token(gate: Gate, request_) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(gate.sue, "django.contrib.auth.backends.ModelBackend")
    assert client.post(url(request_, "reveal"), ASKED).status_code == 403
