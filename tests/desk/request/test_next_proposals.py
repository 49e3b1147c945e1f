"""What the agent proposed after a decision is linked where the decision is read."""

from __future__ import annotations

from datetime import timedelta

from django.urls import reverse

from journal import clock
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import url
from tests.factories import propose
from tests.markup import read_page

ASKS = "?part=following"


def rejected(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent).request
    return factories.decide(request, gate.people["rita"], "reject")


def test_the_next_proposal_of_the_run_is_linked(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    propose(gate.agent, amount="30.00", thread="another")
    propose(gate.agent, "look")
    following = propose(gate.agent, amount="20.00")
    cut = _following(read_page(as_("rita").get(url(request))))
    assert "riley then proposed:" in cut
    assert url(following.request) in cut
    assert "20.00" in cut


def test_what_replaced_it_is_linked_in_another_run_too(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    later = propose(gate.agent, thread="another", supersedes=request.proposal_id)
    cut = _following(read_page(as_("rita").get(url(request))))
    assert url(later.request) in cut


def test_what_nobody_is_asked_about_leads_to_the_run(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    propose(gate.agent, "look")
    cut = _following(read_page(as_("otto").get(url(request))))
    assert 'data-testid="not-asked"' in cut
    assert f'href="{reverse("agents:thread", args=["riley", "t-1"])}"' in cut


def test_what_was_there_before_is_not_called_the_next(gate: Gate, as_: SignIn) -> None:
    first = propose(gate.agent).request
    propose(gate.agent, amount="20.00")
    factories.decide(first, gate.people["rita"], "reject")
    assert "then proposed" not in read_page(as_("rita").get(url(first)))


def test_an_open_page_asks_until_it_is_there(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    client = as_("rita", **HTMX)
    live = url(request, "live") + ASKS
    assert f'hx-get="{live}"' in read_page(client.get(url(request)))
    assert client.get(live).status_code == 204
    propose(gate.agent, amount="20.00")
    answer = client.get(live)
    assert answer.status_code == 286
    assert "then proposed" in read_page(answer)


def test_an_open_page_asks_no_longer_than_two_minutes(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    long_ago = clock.now() - timedelta(minutes=3)
    ApprovalRequest.objects.filter(pk=request.pk).update(settled_at=long_ago)
    client = as_("rita", **HTMX)
    assert "hx-get" not in _following(read_page(client.get(url(request))))
    answer = client.get(url(request, "live") + ASKS)
    assert (answer.status_code, answer.content.strip()) == (286, b"")


def _following(source: str) -> str:
    _, found, after = source.partition('id="following"')
    return after[: after.index("</p>")] if found else ""


def test_of_a_request_that_waits_nothing_follows(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    propose(gate.agent, amount="20.00")
    source = read_page(as_("tom").get(url(request)))
    assert "then proposed" not in source
    assert 'id="following"' not in source
