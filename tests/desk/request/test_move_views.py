"""Moving a request to another queue at its page."""

from __future__ import annotations

import html

import pytest
from django.utils.html import strip_tags
from guardian.shortcuts import remove_perm

from desk.components import log_lines
from policies.models import Queue
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.request.test_views import url
from tests.factories import decide, propose
from tests.markup import find_element, read_page

WHY = "Mail answers for <b>this</b> customer."


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def flat(page: str) -> str:
    return html.unescape(strip_tags(page))


def address(request: ApprovalRequest) -> str:
    return f"{url(request)}move/"


def test_a_supervisor_moves_it_and_its_page_says_so(
    as_: SignIn, gate: Gate, request_: ApprovalRequest
) -> None:
    client = as_("sue")
    page = read_page(client.get(url(request_)))
    assert f'href="{address(request_)}"' in page
    form = read_page(client.get(address(request_)))
    assert ">Mail</option>" in form
    assert ">Money</option>" not in form
    answer = client.post(address(request_), {"queue": "mail", "reason": WHY})
    assert (answer.status_code, answer["Location"]) == (303, url(request_))
    after = read_page(client.get(url(request_)))
    text = flat(after)
    assert "Moved to Mail. Its people are notified." in text
    assert "A supervisor moved it from another queue" in text
    assert "Why it was moved" in text
    assert "<b>this</b>" not in after
    request_.refresh_from_db()
    history = log_lines.build_history(gate.sue, request_)
    said = ["".join(part.text for part in line.wording) for line in history]
    assert "Sue Example moved the request from money to mail" in said


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"queue": "mail", "reason": " "}, "Say why it moves"),
        ({"queue": "", "reason": WHY}, "Choose a queue."),
        ({"queue": "money", "reason": WHY}, "There is no such queue to move it to"),
        ({"queue": "nowhere", "reason": WHY}, "There is no such queue to move it to"),
        ({"queue": "mail", "reason": WHY + "x" * 2000}, "at most 2000 characters"),
    ],
)
def test_a_bad_form_keeps_what_was_typed(
    as_: SignIn, request_: ApprovalRequest, sent: dict[str, str], error: str
) -> None:
    answer = as_("sue").post(address(request_), sent)
    assert answer.status_code == 422
    page = read_page(answer)
    assert error in flat(page)
    assert sent["reason"].strip() in flat(page)
    if sent["queue"] == "mail":
        assert '<option value="mail" selected>' in page
    request_.refresh_from_db()
    assert request_.version == 1


def test_a_queue_without_deciders_is_refused_at_the_field(
    as_: SignIn, request_: ApprovalRequest
) -> None:
    Queue.objects.create(name="empty", title="Empty")
    sent = {"queue": "empty", "reason": WHY}
    answer = as_("sue").post(address(request_), sent)
    assert answer.status_code == 422
    page = read_page(answer)
    assert "Only 0 of 1 people of Empty could decide it" in page
    assert 'aria-describedby="queue-error"' in page
    assert WHY in flat(page)


def test_a_move_of_what_was_decided_meanwhile_keeps_the_reason(
    as_: SignIn, gate: Gate, request_: ApprovalRequest
) -> None:
    client = as_("sue")
    decide(request_, gate.rita, "reject")
    answer = client.post(address(request_), {"queue": "mail", "reason": WHY})
    assert answer.status_code == 409
    problem = find_element(read_page(answer), "problem")
    assert "There is nothing left to decide" in problem
    assert WHY in flat(read_page(answer))


@pytest.mark.parametrize("name", ["rita", "adam", "otto"])
def test_others_are_neither_offered_nor_allowed_it(
    as_: SignIn, request_: ApprovalRequest, name: str
) -> None:
    client = as_(name)
    assert address(request_) not in read_page(client.get(url(request_)))
    assert client.get(address(request_)).status_code == 403
    answer = client.post(address(request_), {"queue": "mail", "reason": WHY})
    assert answer.status_code == 403


def test_people_of_the_old_queue_alone_no_longer_see_it(
    as_: SignIn, gate: Gate, request_: ApprovalRequest
) -> None:
    remove_perm("policies.decide", gate.tom, Queue.objects.get(name="mail"))
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    assert as_("tom").get(url(request_)).status_code == 200
    assert as_("rita").get(url(request_)).status_code == 404
    as_("sue").post(address(request_), {"queue": "mail", "reason": WHY})
    assert as_("tom").get(url(request_)).status_code == 404
    page = read_page(as_("rita").get(url(request_)))
    assert "Why it was moved" in flat(page)
    assert 'data-testid="verb-approve"' in page


def test_a_supervisor_who_voted_can_still_move_it(as_: SignIn, gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    page = read_page(as_("sue").get(url(request)))
    assert f'href="{address(request)}"' in page
