"""Text messages, proved against a server that checks what Twilio's Messages API
requires and answers in its recorded shapes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.core import mail

from policies.choices import Risk
from reviews.models import Notice
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain
from tests.notifications.channels.apis import (
    Answer,
    Api,
    Call,
    activate_routes,
    count_promised,
    running,
)
from tests.notifications.test_plan import ALL_DAY, chooses, time_comes

pytestmark = pytest.mark.django_db

ACCOUNT, TOKEN, SENDER = "AC" + "5" * 32, "a-token-of-twilio", "+15005550006"
BASIC = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
RITA, TOM = "+493012345678", "+493012345679"
# The numbers of a GSM text; any other character halves what fits into one part.
GSM = re.compile(r"[@A-Za-z0-9 \n.,:;!?()+/_#\[\]-]*")


def twilio_rules(call: Call) -> Answer:
    """What the API requires of a call, and its answer."""
    assert call.path == f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
    assert call.headers["content-type"] == "application/x-www-form-urlencoded"
    if call.headers["authorization"] != f"Basic {BASIC}":
        body = {"code": 20003, "message": "Authenticate", "status": 401}
        return Answer(401, body)
    said = {name: one for name, (one,) in parse_qs(call.body.decode()).items()}
    assert set(said) == {"To", "From", "Body"}
    assert said["From"] == SENDER
    assert 0 < len(said["Body"]) <= 1600
    if said["To"] == TOM:
        body = {"code": 21211, "message": "Invalid 'To' Phone Number", "status": 400}
        return Answer(400, body)
    return Answer(201, {"sid": "SM" + "9" * 32, "status": "queued", "to": said["To"]})


@pytest.fixture
def api(settings: Any) -> Iterator[Api]:
    with running(twilio_rules) as found:
        changed = {
            "sms_account": ACCOUNT,
            "sms_token": TOKEN,
            "sms_from": SENDER,
            "sms_api_url": found.url,
        }
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
        yield found


def test_who_has_a_phone_gets_a_text_and_others_get_mail(gate: Gate, api: Api) -> None:
    activate_routes(gate, {"to": ["sms"], "queues": ["money"]})
    chooses(gate.rita, phone=RITA)
    chooses(gate.tom, phone=TOM)
    chooses(gate.sam, email={Risk.HIGH: "never"})
    request = propose(gate.agent).request
    drain("request.opened")
    assert [one.to for one in mail.outbox] == [["sue@example.com"]]
    taken = Notice.objects.get(person=gate.rita)
    assert taken.message_id == "SM" + "9" * 32
    (body,) = (
        parse_qs(call.body.decode())["Body"][0]
        for call in api.calls
        if RITA[1:] in call.body.decode()
    )
    assert request.pk in body
    assert GSM.fullmatch(body)
    refused = Notice.objects.get(person=gate.tom)
    assert refused.error == "Text message: error 21211"
    assert refused.let_go == "undeliverable"


def test_what_quiet_hours_held_back_is_one_text(gate: Gate, api: Api) -> None:
    activate_routes(gate, {"to": ["sms"]})
    chooses(gate.rita, phone=RITA, **ALL_DAY)
    for number in range(2):
        propose(gate.agent, customer=f"C-{number}")
    drain("request.opened")
    assert not api.calls
    api.troubles.append(Answer(429, headers={"Retry-After": "60"}))
    time_comes()
    assert count_promised("notice.digest") == 1
    time_comes()
    _, second = api.calls
    assert "2 requests need your decision" in parse_qs(second.body.decode())["Body"][0]
    mine = Notice.objects.filter(person=gate.rita)
    assert not mine.filter(sent_at=None).exists()
    assert set(mine.values_list("message_id", flat=True)) == {"SM" + "9" * 32}


def test_a_number_is_checked_and_tried_on_the_page(
    gate: Gate, api: Api, client: Any
) -> None:
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    page = client.get("/me/notifications/")
    form = page.context["form"]
    fields = {one.html_name: one.value() for one in form if one.value() is not None}
    refused = client.post("/me/notifications/", {**fields, "phone": "12"})
    assert "country code" in refused.content.decode()
    client.post("/me/notifications/", {**fields, "phone": "+49 30 12345678"})
    client.post("/me/notifications/test/", {"channel": "sms"})
    drain("notice.test")
    (call,) = api.calls
    assert parse_qs(call.body.decode())["To"] == [RITA]
    assert client.post("/me/notifications/test/", {"channel": "fax"}).status_code == 404
