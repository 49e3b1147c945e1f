"""Incoming webhooks: Slack's form, which Mattermost reads too, Teams' cards, and the
signed webhook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from standardwebhooks.webhooks import Webhook

from notifications.channels import chat
from notifications.channels.content import MessageSummary
from reviews.models import Notice
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain
from tests.notifications.channels.apis import (
    Answer,
    Api,
    Call,
    activate_routes,
    running,
)

pytestmark = pytest.mark.django_db


def webhook_rules(call: Call) -> Answer:
    """What each receiver requires of a call, and its answer."""
    assert call.headers["content-type"] == "application/json"
    said = call.json
    if call.path == "/teams":
        (card,) = said["attachments"]
        assert said["type"] == "message"
        assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
        assert card["content"]["type"] == "AdaptiveCard"
        assert {one["type"] for one in card["content"]["actions"]} == {"Action.OpenUrl"}
        return Answer(202, b"")
    if call.path == "/signed":
        secret = django_settings.COUNTERSEAL.webhook_secret
        Webhook(secret).verify(call.body, dict(call.headers))  # it raises
        return Answer(204, b"")
    assert call.path == "/services/T0/B0/secret"
    assert said["text"]
    return Answer(200, b"ok")


@pytest.fixture
def api(settings: Any) -> Iterator[Api]:
    with running(webhook_rules) as found:
        teams = f"teams+{found.url}/teams"
        rooms = {"ops": f"{found.url}/services/T0/B0/secret", "board": teams}
        changed = {
            "chat_webhooks": rooms,
            "notify_webhooks": {"wall": f"{found.url}/signed"},
        }
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
        yield found


def test_each_receiver_gets_its_form(gate: Gate, api: Api) -> None:
    activate_routes(gate, {"to": ["chat:ops", "chat:board", "webhook", "chat:gone"]})
    request = propose(gate.agent).request
    drain("request.opened")
    assert {call.path for call in api.calls} == {
        "/services/T0/B0/secret",
        "/teams",
        "/signed",
    }
    assert all(request.pk in call.body.decode() for call in api.calls)
    (signed,) = (call for call in api.calls if call.path == "/signed")
    notice = Notice.objects.get(channel="webhook")
    assert notice.message_id == signed.headers["webhook-id"]
    assert signed.json["data"]["event"] == "opened"
    gone = Notice.objects.get(target="gone")
    assert gone.error == "Chat: CHAT_WEBHOOKS has no webhook gone"


def test_an_error_names_no_address(gate: Gate, api: Api) -> None:
    """The address of a webhook is a secret."""
    activate_routes(gate, {"to": ["chat:ops"]})
    api.troubles.append(Answer(404, b"no_team"))
    propose(gate.agent)
    drain("request.opened")
    assert Notice.objects.get().error == "Chat: ops answered 404"


def test_nothing_that_a_message_says_is_obeyed() -> None:
    hostile = "<!here> [a](http://evil.example) **b**"
    summary = MessageSummary(hostile, hostile, hostile, [("Tool", hostile)], "l", "r")
    assert "<!here>" not in str(chat.build_attachment(summary))
    body = chat.build_card(summary)["attachments"][0]["content"]["body"]
    assert all("](" not in one["text"] for one in body[:2])
