"""Push messages to the browsers that a person registered, a phone's among them.

Only the browser can read a message: the push service gets it encrypted (RFC 8291) and
knows the sender by the installation's key (VAPID, RFC 8292). Push addresses are written
by browsers, so they get the checks of foreign addresses.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from journal import clock
from policies.choices import Risk
from policies.models import Person
from reviews.models import ApprovalRequest, PushSubscription

from . import calls, content, subscriptions
from .contract import Channel, ChannelMessage, DeliveryError

CURVE = ec.SECP256R1()
CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
RECORD_SIZE = 4096
TOKEN_LIFE = timedelta(hours=12)  # RFC 8292 allows a day
LONGEST_KEPT_S = 4 * 60 * 60  # how long a push service keeps it for a phone that is off


class PushChannel(Channel):
    """A message to each browser that the person registered. Its id is what the push
    services call the messages that they took."""

    name = "push"
    title = "Push"
    variables = ("VAPID_KEY",)
    is_personal = True

    def is_configured(self) -> bool:
        return bool(settings.COUNTERSEAL.vapid_key)

    def find_address(self, person: Person) -> str:
        count = person.push_subscriptions.count()
        return f"{count} browser{'' if count == 1 else 's'}" if count else ""

    def select_reachable(self, people: Sequence[Person]) -> set[int]:
        browsers = PushSubscription.objects.filter(person__in=people)
        return set(browsers.values_list("person_id", flat=True))

    def dispatch(self, message: ChannelMessage) -> str:
        assert message.person is not None  # it is a personal channel
        taken, failed = [], None
        text = json.dumps(build_payload(message)).encode()
        for browser in message.person.push_subscriptions.order_by("pk"):
            try:
                taken.append(_push_message(browser, message, text))
            except DeliveryError as error:
                failed = error
        if taken:
            return " ".join(taken)
        raise failed or DeliveryError("Push: no browser is registered", final=True)


CHANNEL = PushChannel()


def _push_message(
    browser: PushSubscription, message: ChannelMessage, text: bytes
) -> str:
    """Push to one browser. Removes a subscription that its push service has ended."""
    body = encrypt_message(
        text,
        subscriptions.decode_base64(browser.p256dh),
        subscriptions.decode_base64(browser.auth),
    )
    headers = {
        "Authorization": build_authorization(browser.endpoint),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(_compute_life(message)),
        "Urgency": _choose_urgency(message),
        "Topic": _build_topic(message),
    }
    reply = calls.call_service("Push", browser.endpoint, body, headers, foreign=True)
    if reply.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        subscriptions.remove_ended_subscription(pk=browser.pk)
        raise DeliveryError("Push: the browser is not registered any more", final=True)
    if not calls.is_success(reply):
        raise DeliveryError(f"Push: status {reply.status}", final=True)
    return urlsplit(reply.location).path.rpartition("/")[2] or message.key


def build_payload(message: ChannelMessage) -> dict[str, str]:
    """What the browser shows, and the page that a click opens."""
    if message.is_test:
        title, text, path = "Test message from Counterseal", "", "/me/notifications/"
    elif message.is_digest:
        title = content.format_digest_subject(message.lines, message.rest)
        text, path = "", "/queue/"
    else:
        (line,) = message.lines
        summary = content.summarize_line(line)
        title, text = summary.subject, summary.effect[:500]
        path = summary.link.removeprefix(settings.COUNTERSEAL.base_url)
    return {"title": title, "body": text, "path": path, "tag": _build_topic(message)}


def _find_request(message: ChannelMessage) -> ApprovalRequest | None:
    about = message.lines[0].about if len(message.lines) == 1 else None
    return about if isinstance(about, ApprovalRequest) else None


def _compute_life(message: ChannelMessage) -> int:
    """Seconds that a push service may keep the message: no longer than it matters."""
    request = _find_request(message)
    if request is None or not message.lines[0].waits:
        return LONGEST_KEPT_S
    left = (request.expires_at - clock.now()).total_seconds()
    return max(0, min(LONGEST_KEPT_S, int(left)))


def _choose_urgency(message: ChannelMessage) -> str:
    request = _find_request(message)
    urgent = request is not None and request.risk in {Risk.HIGH, Risk.CRITICAL}
    return "high" if urgent else "normal"


def _build_topic(message: ChannelMessage) -> str:
    """A newer message about the same subject replaces the older one, on its way and on
    the screen. At most 32 characters of base64url (RFC 8030 5.4)."""
    request = _find_request(message)
    subject = request.pk if request else message.key
    return encode_base64(hashlib.sha256(subject.encode()).digest()[:24])


def encrypt_message(
    text: bytes,
    p256dh: bytes,
    auth: bytes,
    *,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes = b"",
) -> bytes:
    """Encrypt a message for a browser (RFC 8291), as one record of RFC 8188. `sender`
    and `salt` are made anew unless given. Raises ValueError for a key that is no point
    of the curve."""
    sender, salt = sender or ec.generate_private_key(CURVE), salt or os.urandom(16)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, p256dh)
    ours = _encode_public_key(sender)
    shared = sender.exchange(ec.ECDH(), theirs)
    secret = _derive_key(auth, shared, b"WebPush: info\0" + p256dh + ours, 32)
    key = _derive_key(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive_key(salt, secret, b"Content-Encoding: nonce\0", 12)
    # The byte 2 ends the last record.
    sealed = AESGCM(key).encrypt(nonce, text + b"\2", None)
    head = salt + RECORD_SIZE.to_bytes(4, "big") + len(ours).to_bytes(1, "big")
    return head + ours + sealed


def _derive_key(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def _encode_public_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@lru_cache(maxsize=4)
def _load_sender_key(seed: bytes) -> ec.EllipticCurvePrivateKey:
    """The key of the installation, from 32 random bytes."""
    scalar = int.from_bytes(seed, "big") % (CURVE_ORDER - 1) + 1
    return ec.derive_private_key(scalar, CURVE)


def get_public_key() -> str:
    """The installation's public key, with which a browser subscribes."""
    sender = _load_sender_key(settings.COUNTERSEAL.vapid_key)
    return encode_base64(_encode_public_key(sender))


def build_authorization(endpoint: str) -> str:
    """The Authorization header of RFC 8292 for one push service."""
    parts, counterseal = urlsplit(endpoint), settings.COUNTERSEAL
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int((clock.now() + TOKEN_LIFE).timestamp()),
        "sub": counterseal.vapid_contact or counterseal.base_url,
    }
    token = jwt.encode(claims, _load_sender_key(counterseal.vapid_key), "ES256")
    return f"vapid t={token}, k={get_public_key()}"


def encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
