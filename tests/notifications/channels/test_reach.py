"""A request whose messages reached nobody says so on its page and its row, and to
supervisors message by message."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from journal import clock
from notifications.channels import reach
from policies.models import Person
from reviews.holds import take
from reviews.models import ApprovalRequest, Notice
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain
from tests.markup import read_text
from tests.notifications.channels.apis import activate_routes

pytestmark = pytest.mark.django_db

UNREACHED = "No message was sent: Slack is not set up on this installation"


@pytest.fixture
def as_(client: Any) -> Any:
    def sign_in(person: Person) -> Any:
        client.force_login(person, "django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in


def test_a_rejected_delivery_is_on_the_item(gate: Gate, as_: Any) -> None:
    activate_routes(gate, {"to": ["slack:#money"]})
    request = propose(gate.agent).request
    page = as_(gate.otto).get(f"/requests/{request.pk}/")
    assert UNREACHED not in page.content.decode()
    live = f"/requests/{request.pk}/live/"
    etag = re.findall(r'"If-None-Match": "([^"]+)"', page.content.decode())[0]
    unchanged = {"HTTP_IF_NONE_MATCH": etag, "HTTP_HX_REQUEST": "true"}
    assert as_(gate.otto).get(live, **unchanged).status_code == 204
    drain("request.opened")
    said = as_(gate.otto).get(live, **unchanged)
    assert UNREACHED in read_text(said, "unreached")
    queue = as_(gate.rita).get("/queue/").content.decode()
    assert "<b>No message was sent</b>" in queue
    listed = as_(gate.sue).get(f"/requests/{request.pk}/notices/")
    assert "#money" in read_text(listed, "messages")
    assert "Slack is not set up" in read_text(listed, "messages")
    # As soon as one message is sent, somebody was reached.
    Notice.objects.update(sent_at=clock.now(), error="")
    page = as_(gate.sue).get(f"/requests/{request.pk}/")
    assert UNREACHED not in page.content.decode()


def test_mail_that_nobody_acts_on_reaches_nobody(gate: Gate, as_: Any) -> None:
    request = propose(gate.agent).request
    drain("request.opened")
    assert reach.UNREAD not in as_(gate.rita).get("/queue/").content.decode()
    past = clock.now() - timedelta(days=9)
    ApprovalRequest.objects.filter(pk=request.pk).update(opened_at=past)
    assert reach.UNREAD in as_(gate.rita).get("/queue/").content.decode()
    take.take_hold(request_id=request.pk, person=gate.tom)
    assert reach.UNREAD not in as_(gate.rita).get("/queue/").content.decode()
