"""Escalations, announced effects, the log and its records, help, signing in."""

from __future__ import annotations

import pytest
from django.test import Client

from journal.models import LogRecord
from reviews.executions import run
from reviews.models import Execution
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_text

PAGES = ["/queue/", "/escalations/", "/announced/", "/unknown/", "/stop/", "/log/"]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_for_people_who_signed_in(db: None, path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("path", PAGES)
def test_every_role_gets_every_list(gate: Gate, as_: SignIn, path: str) -> None:
    propose(gate.agent, amount="899.00")
    for name in gate.people:
        assert as_(name).get(path).status_code == 200, name


def test_escalations_say_whose_turn_it_is(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    page = read_page(as_("sue").get("/escalations/"))
    assert request.pk in find_element(page, "mine")
    assert request.pk not in find_element(page, "others")
    decide(request, gate.sue)
    page = read_page(as_("sue").get("/escalations/"))
    assert request.pk not in find_element(page, "mine")
    assert request.pk in find_element(page, "others")


def test_a_reviewer_reads_only_what_they_escalated(gate: Gate, as_: SignIn) -> None:
    own = propose(gate.agent).request
    other = propose(gate.agent, amount="899.00", customer="C-2").request
    decide(own, gate.rita, "escalate", reason_code="unsafe")
    source = as_("rita").get("/escalations/").content.decode()
    assert own.pk in source
    assert other.pk not in source


def test_what_ran_without_asking_is_announced(gate: Gate, as_: SignIn) -> None:
    proposal = propose(gate.agent, "tag", thread="t-9")
    stop = 'data-testid="stop"'
    source = read_page(as_("rita").get("/announced/"))
    assert "/threads/riley/t-9/" in source
    assert stop in source
    run.run_execution(Execution.objects.get(proposal=proposal).pk)
    source = read_page(as_("rita").get("/announced/"))
    assert 'data-state="executed"' in source
    assert stop not in source


def test_the_log_is_sentences(gate: Gate, as_: SignIn) -> None:
    decide(propose(gate.agent).request, gate.rita, "reject", reason_code="unsafe")
    source = as_("otto").get("/log/").content.decode()
    assert "<b>Rita Example</b></a>" in source
    assert '<a href="/agents/riley/"><b>riley</b></a>' in source


def test_every_kind_of_record_has_a_sentence_of_its_own(
    gate: Gate, as_: SignIn
) -> None:
    decide(propose(gate.agent).request, gate.rita)
    run.run_execution(Execution.objects.get().pk)
    source = as_("otto").get("/log/").content.decode()
    for kind in LogRecord.objects.values_list("kind", flat=True).distinct():
        assert f">{kind.replace('.', ' ')}" not in source, kind


def test_the_log_is_narrowed_by_its_address(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    propose(gate.agent, "write", thread="t-2")
    client = as_("otto", **HTMX)
    source = read_page(client.get(f"/log/?q={request.pk}&kind=request"))
    assert source.startswith('<div id="log-table"')
    assert 'data-kind="request.opened"' in source
    assert "t-2" not in source
    nothing = client.get("/log/?q=nothing-like-it")
    assert 'data-testid="no-records"' in read_page(nothing)
    assert client.get("/log/?before=x&kind=y").status_code == 200


def test_the_log_has_pages(gate: Gate, as_: SignIn) -> None:
    for number in range(26):
        propose(gate.agent, "look", thread=f"t-{number}")
    source = as_("otto").get("/log/").content.decode()
    older = source.split('class="pager"')[1].split('href="')[1].split('"')[0]
    assert "before=" in older
    assert as_("otto").get(older.replace("&amp;", "&")).status_code == 200


def test_its_queries_do_not_grow(
    gate: Gate, as_: SignIn, django_assert_max_num_queries
) -> None:
    for number in range(3):
        request = propose(gate.agent, customer=f"C-{number}").request
        decide(request, gate.rita, "reject")
    client = as_("otto")
    client.get("/log/")
    with django_assert_max_num_queries(12):  # one of them for all timelines
        client.get("/log/")


def test_a_record_shows_its_members_and_its_place(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    record = LogRecord.objects.get(kind="request.opened")
    page = as_("otto").get(f"/log/new/{record.pk}/")
    assert request.action_hash in read_page(page)
    assert not read_text(page, "number").isdecimal()
    assert as_("otto").get("/log/999999/").status_code == 404


def test_a_hidden_vote_has_no_page_either(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    record = LogRecord.objects.get(kind="decision.recorded")
    assert as_("sam").get(f"/log/new/{record.pk}/").status_code == 404
    assert as_("sue").get(f"/log/new/{record.pk}/").status_code == 200


def test_help_needs_no_sign_in(db: None) -> None:
    assert Client().get("/help/").status_code == 200


def test_signing_in_leads_back_and_signing_out_ends_it(gate: Gate) -> None:
    client = Client()
    sent = {"username": "rita", "password": factories.PASSWORD, "next": "/log/"}
    assert client.post("/sign-in/", sent)["Location"] == "/log/"
    assert client.get("/log/").status_code == 200
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert client.get("/log/").status_code == 302


def test_a_wrong_password_says_so_and_keeps_the_name(gate: Gate) -> None:
    response = Client().post("/sign-in/", {"username": "rita", "password": "wrong"})
    source = read_page(response)
    assert 'id="signin-error"' in source
    assert 'value="rita"' in source


def test_signing_in_never_leads_elsewhere(gate: Gate) -> None:
    sent = {"username": "rita", "password": factories.PASSWORD}
    response = Client().post("/sign-in/?next=https://evil.example/", sent)
    assert response["Location"] == "/"
