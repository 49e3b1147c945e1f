"""The pages of standing grants: what they offer, to whom, and what a refusal keeps."""

from __future__ import annotations

import pytest

from policies.models import StandingGrant
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide
from tests.markup import read_page, read_shown, read_text
from tests.reviews.standing_grants.allowing import allow_tags, issue, tag


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    allow_tags(gate, minutes=5, uses=3)
    found: ApprovalRequest = tag(gate).request
    return found


def test_the_review_page_offers_it_to_who_may(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    page = f"/requests/{request_.pk}/"
    assert 'data-testid="allow"' in read_page(as_("sue").get(page))
    assert 'data-testid="allow"' not in read_page(as_("rita").get(page))


def test_it_is_not_offered_while_one_is_in_force(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    issue(gate, request_)
    page = read_page(as_("sue").get(f"/requests/{request_.pk}/"))
    assert 'data-testid="allow"' not in page


def test_the_page_says_what_it_allows_and_issues_it(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    client = as_("sue")
    said = read_text(client.get(f"/requests/{request_.pk}/allow/"), "standing-grant")
    assert "At most 3 uses" in said
    assert "(5 minutes)" in said
    answer = client.post(f"/requests/{request_.pk}/allow/", {"reason": "one ticket"})
    assert (answer.status_code, answer["Location"]) == (302, "/standing-grants/")
    page = read_page(client.get("/standing-grants/"))
    assert "0 of 3 uses" in page
    assert "one ticket" in page
    assert 'data-testid="revoke"' in page


def test_other_terms_than_were_read_are_not_allowed(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    client, path = as_("sue"), f"/requests/{request_.pk}/allow/"
    shown = client.get(path)
    sent = read_shown(shown)
    allow_tags(gate, minutes=60, uses=200)
    answer = client.post(path, {"reason": "one ticket", "shown": sent})
    assert answer.status_code == 409
    assert "terms of the policy changed" in read_page(answer)
    assert not StandingGrant.objects.exists()


def test_who_may_not_reads_why(request_: ApprovalRequest, as_: SignIn) -> None:
    page = as_("rita").get(f"/requests/{request_.pk}/allow/")
    assert "Only a supervisor" in read_text(page, "why-not")


def test_without_a_reason_nothing_is_allowed(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    answer = as_("sue").post(f"/requests/{request_.pk}/allow/", {"reason": " "})
    assert answer.status_code == 422
    assert 'id="reason-error"' in read_page(answer)
    assert not StandingGrant.objects.exists()


def test_the_typed_reason_survives_a_decision(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    client = as_("sue")
    decide(request_, gate.rita)
    answer = client.post(f"/requests/{request_.pk}/allow/", {"reason": "one ticket"})
    assert answer.status_code == 409
    assert "one ticket" in read_text(answer, "kept")


def test_a_reviewer_of_the_queue_revokes_it(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    row = issue(gate, request_)
    client = as_("tom")
    used = read_shown(client.get("/standing-grants/"), "uses")
    StandingGrant.objects.update(uses=2)
    answer = client.post(f"/standing-grants/{row.pk}/revoke/", {"uses": used})
    assert answer["Location"] == "/standing-grants/"
    page = read_page(client.get("/standing-grants/"))
    assert "after 2 of 3 uses, 2 of them since you opened the page" in page
    assert "Revoked by Tom Example" in page
    assert 'data-testid="none-in-force"' in page


def test_a_strangers_queue_has_none(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    row = issue(gate, request_)
    client = as_("owen")
    assert "0 of 3 uses" not in read_page(client.get("/standing-grants/"))
    assert client.post(f"/standing-grants/{row.pk}/revoke/").status_code == 404


def test_the_runs_page_shows_what_is_used_of_it(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    run = f"/threads/riley/{request_.proposal.thread}/"
    assert 'data-testid="standing-grants"' not in read_page(as_("sue").get(run))
    issue(gate, request_)
    assert "0 of 3" in read_text(as_("sue").get(run), "standing-grants")
    tag(gate, "b")
    assert "1 of 3" in read_text(as_("sue").get(run), "standing-grants")
    # An owner sees the run, but not what people of its queue allowed.
    assert 'data-testid="standing-grants"' not in read_page(as_("owen").get(run))
