"""An open page says that somebody ended its hold, and says it once."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from reviews.holds import take
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import url
from tests.factories import propose
from tests.markup import read_page

SAID = "Sue Example ended your claim at "


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    return request


def tag(source: str) -> str:
    found = re.search(r'"If-None-Match": "([^"]+)"', source.replace("&quot;", '"'))
    assert found
    return found[1]


def live(client: Client, request: ApprovalRequest, etag: str) -> str:
    """What the live fragment says to a page with this tag."""
    answer = client.get(url(request, "live"), headers={"If-None-Match": etag})
    return read_page(answer)


def test_the_live_fragment_says_it_and_says_it_aloud_once(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    rita = as_("rita", **HTMX)
    before = tag(read_page(rita.get(url(request_))))
    take.break_hold(request_id=request_.pk, person=gate.sue, reason="lunch")
    heard = live(rita, request_, before)
    assert f'data-testid="lost"><b>{SAID}' in heard
    assert f'data-say="{SAID}' in heard
    take.take_hold(request_id=request_.pk, person=gate.sue)
    again = live(rita, request_, tag(heard))
    assert f"<b>{SAID}" in again
    assert f'data-say="{SAID}' not in again
    assert live(rita, request_, tag(again)) == ""


def test_what_is_armed_stays(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    """The panel that somebody types in is not drawn again for it."""
    rita = as_("rita", **HTMX)
    before = tag(read_page(rita.get(url(request_))))
    take.break_hold(request_id=request_.pk, person=gate.sue, reason="lunch")
    assert 'id="decide"' not in live(rita, request_, before)


def test_the_page_says_it_without_javascript_to_that_person_alone(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    take.break_hold(request_id=request_.pk, person=gate.sue, reason="lunch")
    assert SAID in read_page(as_("rita").get(url(request_)))
    for name in ("tom", "sue", "otto", "owen"):
        assert SAID not in read_page(as_(name).get(url(request_)))


def test_a_taken_offer_is_said_with_whose_it_is_now(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    take.offer_hold(request_id=request_.pk, person=gate.rita, to=gate.tom)
    take.take_hold(request_id=request_.pk, person=gate.tom, accept=True)
    source = read_page(as_("rita").get(url(request_)))
    assert "Tom Example accepted this from you at " in source
    assert 'data-state="held"' in source
