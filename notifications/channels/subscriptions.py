"""The browsers that a person registered for push messages."""

from __future__ import annotations

import base64
import hashlib

from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings

from journal.errors import InvalidInput, NotFound
from journal.operations import operation
from policies.models import Person
from reviews.models import PushSubscription
from reviews.outbound import addresses, own_ports
from reviews.outbound.addresses import NotAllowed

MAX_BROWSERS = 10  # of one person
MAX_ENDPOINT = 1000  # characters
_BROWSERS = (
    ("Edg", "Edge"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def decode_base64(text: str) -> bytes:
    """Decode base64url with or without padding. Raises ValueError."""
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)


@operation(writes="PushSubscription")
def register_browser(
    *, person: Person, endpoint: str, p256dh: str, auth: str, agent: str
) -> PushSubscription:
    """Register the browser that asks; `agent` is its User-Agent header. A browser that
    another person used before is theirs no longer. Raises InvalidInput for an address
    or keys that no browser would send."""
    _check_endpoint(endpoint)
    _check_keys(p256dh, auth)
    digest = hashlib.sha256(endpoint.encode()).digest()
    others = person.push_subscriptions.exclude(digest=digest)
    if others.count() >= MAX_BROWSERS:
        raise InvalidInput(
            f"You can register at most {MAX_BROWSERS} browsers. Remove one first."
        )
    row, _ = PushSubscription.objects.update_or_create(
        digest=digest,
        defaults={
            "person": person,
            "endpoint": endpoint,
            "p256dh": p256dh,
            "auth": auth,
            "browser": describe_browser(agent),
        },
    )
    return row


@operation(writes="PushSubscription")
def remove_browser(*, person: Person, browser_id: int) -> None:
    """Remove one of the person's browsers. Raises NotFound."""
    if not person.push_subscriptions.filter(pk=browser_id).delete()[0]:
        raise NotFound


@operation(writes="PushSubscription")
def remove_ended_subscription(*, pk: int) -> None:
    """Remove a subscription that its push service has ended."""
    PushSubscription.objects.filter(pk=pk).delete()


def describe_browser(agent: str) -> str:
    """A browser in words, by its User-Agent header: `Chrome on Android`."""
    name = next((title for word, title in _BROWSERS if word in agent), "Browser")
    system = next((title for word, title in _SYSTEMS if word in agent), "")
    return f"{name} on {system}" if system else name


def _check_endpoint(endpoint: str) -> None:
    """Check the address as far as possible without resolving its name; each message
    checks what the name resolves to."""
    if len(endpoint) > MAX_ENDPOINT:
        raise InvalidInput("endpoint: the address is too long.")
    try:
        target = addresses.parse_url(endpoint)
        own_ports.check_target(target, networks=settings.COUNTERSEAL.callback_networks)
    except NotAllowed:
        raise InvalidInput("endpoint: this address is not allowed.") from None
    if target.scheme != "https" and not settings.COUNTERSEAL.local:
        raise InvalidInput("endpoint: the address must begin with https://.")


def _check_keys(p256dh: str, auth: str) -> None:
    try:
        key, secret = decode_base64(p256dh), decode_base64(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        raise InvalidInput("p256dh: this is not the key of a browser.") from None
    if len(key) != 65 or len(secret) != 16:
        raise InvalidInput("auth: these are not the keys of a browser.")
