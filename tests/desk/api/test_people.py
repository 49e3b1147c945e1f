from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from journal import errors
from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import Scope
from reviews.decisions import recall
from reviews.governance import readings
from reviews.models import (
    ApprovalRequest,
    Decision,
    Message,
    PersonalToken,
    StateReading,
)
from reviews.people import tokens
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import PASSWORD, propose
from tests.worlds import WORLD


def call(path: str, body: Any = None, *, token: str = "", client: Any = None) -> Any:
    client = client or Client()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is None:
        return client.get(f"/api/v1{path}", headers=headers)
    return client.post(
        f"/api/v1{path}",
        json.dumps(body),
        content_type="application/json",
        headers=headers,
    )


def verdict(request: ApprovalRequest, verdict: str = "approve", **more: Any) -> Any:
    request.refresh_from_db()
    return {
        "version": request.version,
        "action_hash": request.action_hash,
        "verdict": verdict,
        **more,
    }


@pytest.fixture
def token(gate: Gate) -> str:
    return tokens.create_token(person=gate.rita, name="script")


def test_a_token_lists_reads_and_decides(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    listed = call("/requests", token=token).json()["items"]
    assert [item["id"] for item in listed] == [request.pk]
    assert listed[0]["can_decide"] is True
    said = call(f"/requests/{request.pk}/decide", verdict(request), token=token)
    assert (said.status_code, said.json()["status"]) == (200, "authorized")


@pytest.mark.parametrize(
    ("verb", "more", "status", "tier"),
    [
        ("approve", {}, "authorized", "approve"),
        ("reject", {"reason_code": "wrong_target"}, "rejected", "approve"),
        ("modify", {"amount": "39.00"}, "authorized", "approve"),
        ("escalate", {"reason_code": "unclear"}, "pending", "escalate"),
    ],
)
def test_a_token_says_each_of_the_four_verbs(
    gate: Gate, token: str, verb: str, more: dict[str, str], status: str, tier: str
) -> None:
    request = propose(gate.agent).request
    shown = call(f"/requests/{request.pk}", token=token).json()
    body = {"verdict": verb, "version": shown["version"], **more}
    body |= {"action_hash": shown["action_hash"], "reading": shown["reading"]}
    if "amount" in body:
        body["args"] = {**shown["args"], "amount": body.pop("amount")}
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert said.status_code == 200, said.content
    assert (said.json()["status"], said.json()["tier"]) == (status, tier)
    edited = verb == "modify"
    assert said.json()["args"]["amount"] == ("39.00" if edited else "40.00")
    assert Decision.objects.get().verdict == verb


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("approve", {}),
        ("reject", {"reason_code": "wrong_target"}),
        ("escalate", {"reason_code": "unclear"}),
    ],
)
def test_a_verdict_whose_answer_was_lost_is_sent_again(
    gate: Gate, token: str, verb: str, more: dict[str, str]
) -> None:
    request = propose(gate.agent).request
    path, body = f"/requests/{request.pk}/decide", verdict(request, verb, **more)
    first, second = (call(path, body, token=token) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json()["status"] == first.json()["status"]
    assert Decision.objects.filter(request=request).count() == 1


def test_a_vote_of_two_is_sent_again_and_counts_once(gate: Gate) -> None:
    request = propose(gate.agent).request
    factories.decide(request, gate.rita, "escalate")  # a reviewer and a supervisor
    client = Client()
    client.force_login(gate.tom, "django.contrib.auth.backends.ModelBackend")
    path, body = f"/requests/{request.pk}/decide", verdict(request, password=PASSWORD)
    said = [call(path, body, client=client).status_code for _ in range(2)]
    request.refresh_from_db()
    assert (said, request.status) == ([200, 200], "pending")
    assert request.decisions.filter(counts=True).count() == 1


def test_another_verdict_than_the_recorded_one_is_refused(
    gate: Gate, token: str
) -> None:
    request = propose(gate.agent).request
    path, body = f"/requests/{request.pk}/decide", verdict(request)
    other = tokens.create_token(person=gate.sue, name="script")
    assert call(path, body, token=token).status_code == 200
    for again, by in (
        (body, other),
        ({**body, "reason": "looked"}, token),
        ({**body, "verdict": "reject", "reason_code": "wrong_target"}, token),
    ):
        refused = call(path, again, token=by)
        assert (refused.status_code, refused.json()["code"]) == (409, "decided"), again


def test_a_recalled_approval_is_not_sent_again(gate: Gate, token: str) -> None:
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    path, body = f"/requests/{request.pk}/decide", verdict(request)
    assert call(path, body, token=token).json()["status"] == "recallable"
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    refused = call(path, body, token=token)
    assert (refused.status_code, refused.json()["code"]) == (409, "stale")


@pytest.mark.parametrize("verb", ["approve", "modify"])
def test_what_is_due_a_step_up_is_closed_to_a_token(gate: Gate, verb: str) -> None:
    token = tokens.create_token(person=gate.sue, name="script")
    request = propose(gate.agent, amount="899.00").request
    args = call(f"/requests/{request.pk}", token=token).json()["args"]
    more = {"args": {**args, "amount": "898.00"}} if verb == "modify" else {}
    body = verdict(request, verb, password=PASSWORD, **more)
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert (said.status_code, said.json()["code"]) == (401, "reauth")


def test_a_reason_that_contradicts_the_verdict_is_422(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    path = f"/requests/{request.pk}/decide"
    for word, code, fits in [
        ("approve", "wrong_target", "verified, other"),
        ("reject", "verified", "wrong_target, wrong_amount, not_needed, unsafe"),
    ]:
        said = call(path, verdict(request, word, reason_code=code), token=token)
        (error,) = said.json()["errors"]
        assert (said.status_code, said.json()["code"]) == (422, "reason")
        assert error["path"] == "reason_code"
        assert f"{code} does not fit {word}; use one of: {fits}" in error["message"]
    assert not Decision.objects.exists()


def limited(person: Person, minor: int) -> None:
    person.ceiling_minor, person.ceiling_currency = minor, "USD"
    person.save()


def test_what_one_can_decide_knows_ones_ceiling(gate: Gate, token: str) -> None:
    limited(gate.rita, 1000)
    request = propose(gate.agent).request
    (item,) = call("/requests", token=token).json()["items"]
    assert call(f"/requests/{request.pk}", token=token).json()["can_decide"] is False
    assert item["can_decide"] is False
    assert item["why_not"] == "This amount exceeds your approval limit of 10.00 USD."
    assert item["verdicts"] == ["reject", "modify", "escalate"]
    path = f"/requests/{request.pk}/decide"
    assert call(path, verdict(request), token=token).status_code == 403
    body = verdict(request, "reject", reason_code="unsafe")
    said = call(path, body, token=token).json()
    assert (said["status"], said["verdicts"]) == ("rejected", [])


def test_what_one_can_decide_knows_that_ones_part_is_done(gate: Gate) -> None:
    una = factories.person("una", Role.REVIEWER)
    assign_perm("policies.decide", una, Queue.objects.get(name="money"))
    token = tokens.create_token(person=una, name="script")
    request = propose(gate.agent).request
    factories.decide(request, gate.rita, "escalate")  # a reviewer and a supervisor
    path = f"/requests/{request.pk}"
    assert call(path, token=token).json()["can_decide"] is True
    factories.decide(request, gate.tom)
    item = call(path, token=token).json()
    assert item["can_decide"] is False
    assert (
        item["why_not"]
        == "Your step is already complete. Someone else must decide now."
    )
    assert item["verdicts"] == ["reject", "modify", "escalate"]
    with pytest.raises(errors.NotPermitted, match="Your step is already complete"):
        factories.decide(request, una)


def test_an_edit_above_ones_ceiling_is_taken_and_waits(gate: Gate, token: str) -> None:
    limited(gate.rita, 5000)
    request = propose(gate.agent).request
    args = {**request.sealed.revision.args, "amount": "60.00"}
    body = verdict(request, "modify", args=args, reason_code="wrong_amount")
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert said.status_code == 200
    assert said.json()["status"] == "pending"
    assert (said.json()["version"], said.json()["can_decide"]) == (2, False)


def test_a_token_never_suffices_for_a_step_up(gate: Gate) -> None:
    token = tokens.create_token(person=gate.sue, name="script")
    request = propose(gate.agent, amount="899.00").request
    body = verdict(request, password=PASSWORD)
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert (said.status_code, said.json()["code"]) == (401, "reauth")


def test_a_session_steps_up_with_its_password(gate: Gate) -> None:
    client = Client()
    client.force_login(gate.sue, "django.contrib.auth.backends.ModelBackend")
    request = propose(gate.agent, amount="899.00").request
    path = f"/requests/{request.pk}/decide"
    wrong = call(path, verdict(request, password="nonsense"), client=client)
    assert (wrong.status_code, wrong.json()["code"]) == (401, "reauth")
    right = call(path, verdict(request, password=PASSWORD), client=client)
    assert right.json()["steps"][0]["given"] == 1


def test_a_session_without_its_csrf_token_is_refused(gate: Gate) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    request = propose(gate.agent).request
    said = call(f"/requests/{request.pk}/decide", verdict(request), client=client)
    assert said.status_code == 401
    request.refresh_from_db()
    assert request.status == "pending"


def test_a_revoked_token_ends_at_once(gate: Gate, token: str) -> None:
    tokens.revoke_token(person=gate.rita, token_id=PersonalToken.objects.get().pk)
    assert call("/requests", token=token).status_code == 401


def test_an_inactive_person_has_no_token(gate: Gate, token: str) -> None:
    Person.objects.filter(pk=gate.rita.pk).update(is_active=False)
    assert call("/requests", token=token).status_code == 401


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"version": 9}, 409, "stale"),
        ({"action_hash": "sha256:0"}, 409, "stale"),
        ({"verdict": "reject"}, 422, "reason"),
        ({"verdict": "maybe"}, 422, "invalid"),
        ({"colour": 1}, 422, "invalid"),
        ({"verdict": "modify", "args": {"amount": 1}}, 422, "invalid_args"),
    ],
)
def test_a_refusal_names_its_code(
    gate: Gate, token: str, change: Any, status: int, code: str
) -> None:
    request = propose(gate.agent).request
    body = {**verdict(request), **change}
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert (said.status_code, said.json()["code"]) == (status, code)


def test_a_request_of_another_queue_is_not_there(gate: Gate) -> None:
    stranger = factories.person("zoe", Role.REVIEWER)
    token = tokens.create_token(person=stranger, name="script")
    request = propose(gate.agent).request
    assert call("/requests", token=token).json()["items"] == []
    for body in (None, verdict(request)):
        path = f"/requests/{request.pk}" + ("/decide" if body else "")
        assert call(path, body, token=token).status_code == 404


def test_nobody_gets_401_and_no_redirect(gate: Gate) -> None:
    assert call("/requests").status_code == 401


def moves(request: ApprovalRequest) -> None:
    """The state moves, and somebody who opens the page finds it so."""
    WORLD["before"] = {"amount": "5.00"}
    WORLD["preconditions"] = {"row_version": 2}
    readings.reread_state(request.sealed.revision)


def reading_of(request: ApprovalRequest, token: str) -> str:
    shown: str = call(f"/requests/{request.pk}", token=token).json()["reading"]
    return shown


def test_a_verdict_may_name_the_reading_it_was_shown(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    first = reading_of(request, token)
    assert call("/requests", token=token).json()["items"][0]["reading"] == first
    moves(request)
    path, now = f"/requests/{request.pk}/decide", reading_of(request, token)
    assert now != first
    for stale in (first, "sha256:0"):
        said = call(path, verdict(request, reading=stale), token=token)
        assert (said.status_code, said.json()["code"]) == (409, "precondition")
    assert not Decision.objects.exists()
    said = call(path, verdict(request, reading=now), token=token)
    assert said.json()["status"] == "authorized"
    assert Decision.objects.get().reading == StateReading.objects.get()


def test_a_reading_that_still_stands_is_the_revisions_own(
    gate: Gate, token: str
) -> None:
    request = propose(gate.agent).request
    body = verdict(request, reading=reading_of(request, token))
    assert call(f"/requests/{request.pk}/decide", body, token=token).status_code == 200
    assert Decision.objects.get().reading is None


def test_a_refusal_stands_on_any_reading(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    first = reading_of(request, token)
    moves(request)
    body = verdict(request, "reject", reading=first, reason_code="unsafe")
    said = call(f"/requests/{request.pk}/decide", body, token=token)
    assert said.json()["status"] == "rejected"


def test_a_verdict_that_names_no_reading_is_taken(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    moves(request)
    said = call(f"/requests/{request.pk}/decide", verdict(request), token=token)
    assert said.status_code == 200


def test_the_description_of_the_api_has_the_reading() -> None:
    schemas = call("/openapi.json").json()["components"]["schemas"]
    assert "reading" not in schemas["DecideIn"]["required"]
    assert schemas["DecideIn"]["properties"]["reading"]["maxLength"] == 80
    assert "reading" in schemas["RequestDetailOut"]["required"]


def every_kind(gate: Gate) -> None:
    """Requests of two tools, waiting, voted on, escalated and settled."""
    high = propose(gate.agent, amount="899.00").request
    factories.decide(high, gate.sue)
    handed_up = propose(gate.agent, customer="C-2").request
    factories.decide(handed_up, gate.rita, "escalate")
    factories.decide(propose(gate.agent, customer="C-3").request, gate.rita)
    propose(gate.agent, "write")


def test_a_list_says_of_each_what_its_own_address_says(gate: Gate) -> None:
    every_kind(gate)
    for name in ("rita", "tom", "sue", "sam", "otto"):
        token = tokens.create_token(person=gate.people[name], name="script")
        for status in ("pending", "authorized"):
            answer = call(f"/requests?status={status}", token=token).json()
            assert answer["items"]
            for item in answer["items"]:
                alone = call(f"/requests/{item['id']}", token=token).json()
                assert item == {name: alone[name] for name in item}


def test_a_list_asks_permissions_as_an_operation_does(gate: Gate) -> None:
    every_kind(gate)
    for name in ("rita", "tom", "sue", "sam", "otto", "owen"):
        person = gate.people[name]
        token = tokens.create_token(person=person, name="script")
        for item in call("/requests", token=token).json()["items"]:
            request = ApprovalRequest.objects.get(pk=item["id"])
            why_not = permissions.describe_why_cannot_decide(
                person, request, request.sealed
            )
            assert (item["why_not"], item["can_decide"]) == (why_not, not why_not)


def test_a_stopped_reviewer_reads_so_in_the_list(gate: Gate, token: str) -> None:
    propose(gate.agent)
    key = gate.rita.public_id
    stops.create_stop(
        scope=Scope.REVIEWER, key=key, person=gate.adam, reason="on leave"
    )
    (item,) = call("/requests", token=token).json()["items"]
    assert item["why_not"] == "Your decisions are stopped."


def queries_of_a_list(token: str) -> int:
    with CaptureQueriesContext(connection) as told:
        assert call("/requests", token=token).status_code == 200
    return len(told)


def test_a_list_of_any_size_takes_the_same_queries(gate: Gate, token: str) -> None:
    for number in range(2):
        propose(gate.agent, customer=f"C-{number}")
    of_two = queries_of_a_list(token)
    for number in range(2, 20):
        propose(gate.agent, customer=f"C-{number}")
    assert len(call("/requests", token=token).json()["items"]) == 20
    assert queries_of_a_list(token) == of_two
    assert of_two <= 12


def test_an_unknown_query_parameter_is_named_with_those_allowed(
    gate: Gate, token: str
) -> None:
    request = propose(gate.agent).request
    answer = call("/requests?colour=red&sort=oldest", token=token)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert [one["path"] for one in answer.json()["errors"]] == ["colour", "sort"]
    allowed = answer.json()["errors"][0]["message"]
    assert "allowed are status, agent, tool, limit, cursor" in allowed
    for path in ("/batches?page=2", f"/requests/{request.pk}?request_id=1"):
        assert call(path, token=token).status_code == 422
    said = call(f"/requests/{request.pk}/decide?body=1", verdict(request), token=token)
    assert said.status_code == 422
    assert "it takes none" in said.json()["errors"][0]["message"]
    request.refresh_from_db()
    assert request.status == "pending"


def test_who_is_nobody_hears_of_no_parameter() -> None:
    assert call("/requests?colour=red").status_code == 401


def test_an_unknown_status_is_no_empty_list(gate: Gate, token: str) -> None:
    answer = call("/requests?status=pendng", token=token)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "status"
    assert "'recallable'" in error["message"]


def ids_page_by_page(path: str, token: str) -> list[list[str]]:
    pages, cursor = [], ""
    while True:
        answer = call(f"{path}&cursor={cursor}", token=token)
        assert answer.status_code == 200, answer.content
        pages.append([item["id"] for item in answer.json()["items"]])
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return pages


def test_a_cursor_leads_through_all_requests_once(gate: Gate, token: str) -> None:
    for number in range(7):
        propose(gate.agent, customer=f"C-{number}")
    # Half of them end at one moment: a page's end is a row, not a time.
    rows = ApprovalRequest.objects.order_by("expires_at")
    same = rows[2].expires_at
    ApprovalRequest.objects.filter(pk__in=[one.pk for one in rows[1:5]]).update(
        expires_at=same
    )
    pages = ids_page_by_page("/requests?limit=3", token)
    assert [len(page) for page in pages] == [3, 3, 1]
    whole = [item["id"] for item in call("/requests", token=token).json()["items"]]
    assert [one for page in pages for one in page] == whole
    assert call("/requests?limit=7", token=token).json()["next_cursor"] is None


@pytest.mark.parametrize("cursor", ["x", "AAAA", "w6Q", "MjAyNi0wMS0wMXxyLSc"])
def test_a_cursor_that_is_none_is_refused(gate: Gate, token: str, cursor: str) -> None:
    for path in ("/requests", "/batches"):
        answer = call(f"{path}?cursor={cursor}", token=token)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == "cursor"


def test_a_token_asks_answers_and_sends_back(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    path = f"/requests/{request.pk}/messages"
    body = {"kind": "question", "version": 1, "text": "Which order?"}
    said = call(path, body, token=token)
    assert said.status_code == 200, said.content
    (message,) = said.json()["messages"]
    assert (message["from"], message["kind"], message["round"]) == (
        "reviewer",
        "question",
        1,
    )
    again = call(path, body, token=token)
    assert (again.status_code, again.json()["code"]) == (409, "unanswered")
    answer = call(path, {**body, "kind": "answer"}, token=token)
    assert (answer.status_code, answer.json()["code"]) == (409, "no_question")
    back = call(path, {**body, "kind": "send_back"}, token=token)
    assert back.json()["returned_at"] is not None
    assert (back.json()["status"], back.json()["can_decide"]) == ("pending", True)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"version": 2}, 409, "stale"),
        ({"text": " "}, 422, "reason"),
        ({"text": "a" * 2001}, 422, "invalid"),
        ({"kind": "verdict"}, 422, "invalid"),
        ({"round": 1}, 422, "invalid"),
        ({"reason": "x"}, 422, "invalid"),
    ],
)
def test_a_wrong_message_of_a_person_is_refused(
    gate: Gate, token: str, change: dict[str, Any], status: int, code: str
) -> None:
    request = propose(gate.agent).request
    body = {"kind": "question", "version": 1, "text": "Which order?", **change}
    said = call(f"/requests/{request.pk}/messages", body, token=token)
    assert (said.status_code, said.json()["code"]) == (status, code)
    assert not Message.objects.exists()


def test_an_auditor_may_not_ask(gate: Gate) -> None:
    request = propose(gate.agent).request
    token = tokens.create_token(person=gate.otto, name="script")
    body = {"kind": "question", "version": 1, "text": "Which order?"}
    said = call(f"/requests/{request.pk}/messages", body, token=token)
    assert (said.status_code, said.json()["code"]) == (403, "not_yours")


@pytest.mark.parametrize("verb", ["approve", "reject", "escalate"])
def test_what_belongs_to_another_verdict_is_refused_by_its_path(
    gate: Gate, token: str, verb: str
) -> None:
    request = propose(gate.agent).request
    path = f"/requests/{request.pk}/decide"
    args = {"customer": "C-9", "amount": "40.00", "currency": "USD"}
    for more, wrong in (({"args": args}, "args"), ({"args": {}}, "args")):
        response = call(path, verdict(request, verb, **more), token=token)
        assert response.status_code == 422
        assert [one["path"] for one in response.json()["errors"]] == [wrong]
    if verb != "approve":
        body = verdict(request, verb, conditions={}, reason_code="other", reason="x")
        response = call(path, body, token=token)
        assert [one["path"] for one in response.json()["errors"]] == ["conditions"]
    assert not Decision.objects.exists()


def test_the_preview_of_an_edit_says_what_it_needs(gate: Gate, token: str) -> None:
    request = propose(gate.agent).request
    assert call(f"/requests/{request.pk}", token=token).json()["edit"] == (
        "second_person"
    )
    args = {"customer": "C-1", "amount": "39.00", "currency": "USD"}
    body = {"version": 1, "action_hash": request.action_hash, "args": args}
    path = f"/requests/{request.pk}/preview"
    said = call(path, body, token=token).json()
    assert (said["counts"], said["second_person"]) == (True, [])
    said = call(path, {**body, "args": {**args, "amount": "41.00"}}, token=token).json()
    assert said["counts"] is False
    assert said["second_person"] == ["it raises the amount"]
    assert not Decision.objects.exists()
    stale = call(path, {**body, "version": 2}, token=token)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
