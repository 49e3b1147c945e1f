"""Web push, proved against a push service of ours that checks what RFC 8030, 8291 and
8292 require, and in a real Chromium."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.core import mail

from journal.errors import InvalidInput
from notifications.channels import push, subscriptions
from reviews.models import Notice, PushSubscription
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
from tests.notifications.channels.browsers import (
    CHROME,
    RFC_AUTH,
    RFC_KEY,
    Browser,
    register,
)

pytestmark = pytest.mark.django_db

HEADER = re.compile(r"vapid t=([\w.-]+), k=([\w-]+)")
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
MESSAGE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLoc"
    "InmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLV"
    "WGNWQexSgSxsj_Qulcy4a-fN"
)


def test_a_message_is_encrypted_as_in_the_rfc() -> None:
    scalar = int.from_bytes(subscriptions.decode_base64(SENDER), "big")
    found = push.encrypt_message(
        b"When I grow up, I want to be a watermelon",
        subscriptions.decode_base64(RFC_KEY),
        subscriptions.decode_base64(RFC_AUTH),
        sender=ec.derive_private_key(scalar, ec.SECP256R1()),
        salt=subscriptions.decode_base64(SALT),
    )
    assert push.encode_base64(found) == MESSAGE


def push_rules(call: Call) -> Answer:
    """What a push service requires of a call, and its answer."""
    assert call.headers["content-encoding"] == "aes128gcm"
    assert 0 <= int(call.headers["ttl"]) <= 4 * 60 * 60
    assert call.headers["urgency"] in {"very-low", "low", "normal", "high"}
    assert re.fullmatch(r"[\w-]{1,32}", call.headers["topic"])
    assert 103 < len(call.body) <= 4096
    said = HEADER.fullmatch(call.headers["authorization"])
    assert said
    point = subscriptions.decode_base64(said[2])
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    claims = jwt.decode(
        said[1], key, ["ES256"], audience=f"http://{call.headers['host']}"
    )
    assert claims["exp"] - time.time() <= 24 * 60 * 60
    assert claims["sub"].startswith(("mailto:", "https://"))
    if call.path == "/send/ended":
        return Answer(410, b"")
    return Answer(201, b"", {"Location": f"http://push.example/m/{len(call.path)}-id"})


@pytest.fixture
def api(settings: Any) -> Iterator[Api]:
    with running(push_rules) as found:
        here = settings.COUNTERSEAL
        changed = {
            "vapid_key": bytes(range(32)),
            "vapid_contact": "mailto:ops@example.com",
            "callback_networks": here.webhook_networks,  # loopback
        }
        settings.COUNTERSEAL = here.model_copy(update=changed)
        yield found


def test_who_registered_a_browser_is_pushed_and_mailed(gate: Gate, api: Api) -> None:
    browser = Browser()
    browser.register(gate.rita, f"{api.url}/send/phone")
    Browser().register(gate.rita, f"{api.url}/send/ended")
    request = propose(gate.agent).request
    drain("request.opened")
    assert len(mail.outbox) == 4
    (call,) = (one for one in api.calls if one.path == "/send/phone")
    said = json.loads(browser.read(call.body))
    assert said["path"] == f"/requests/{request.pk}/"
    assert said["title"].startswith("Approval needed: pay, high risk")
    assert call.headers["urgency"] == "high"
    notice = Notice.objects.get(channel="push")
    assert (notice.person, notice.message_id) == (gate.rita, "11-id")
    # The push service ended the other registration.
    assert PushSubscription.objects.get().endpoint.endswith("phone")


def test_troubles_of_a_push_service_are_recorded(gate: Gate, api: Api) -> None:
    activate_routes(gate, {"to": ["push"]})
    register(gate.rita, f"{api.url}/send/phone")
    api.troubles.append(Answer(429, b"", {"Retry-After": "120"}))
    propose(gate.agent)
    drain("request.opened")
    notice = Notice.objects.get(channel="push")
    assert (notice.error, notice.let_go) == ("Push: too many messages", "")


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "https://user@push.example.com/",
        "file:///etc/passwd",
        "https://push.example.com:6379/",
    ],
)
def test_an_address_that_no_browser_would_send_is_refused(
    gate: Gate, endpoint: str
) -> None:
    with pytest.raises(InvalidInput, match="endpoint"):
        register(gate.rita, endpoint)


@pytest.mark.parametrize(("key", "auth"), [("AAAA", RFC_AUTH), (RFC_KEY, "AAAA")])
def test_keys_that_no_browser_would_send_are_refused(
    gate: Gate, key: str, auth: str
) -> None:
    with pytest.raises(InvalidInput):
        subscriptions.register_browser(
            person=gate.rita,
            endpoint="https://push.example.com/1",
            p256dh=key,
            auth=auth,
            agent=CHROME,
        )
