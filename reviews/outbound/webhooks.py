"""Outgoing calls: a POST to an address that was checked first, most of them signed
JSON. Nothing else calls services, endpoints or channels.

It never follows a redirect, ignores proxy settings in the environment, and ends at its
timeout. `NotAllowed` and `NotSent` mean that nothing was sent; `NoUsableAnswer` means
that the receiver may have acted on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpcore2
from django.conf import settings
from django.utils import timezone
from standardwebhooks.webhooks import Webhook

from journal import canonical, ids
from journal.errors import DomainError

from . import addresses, own_ports
from .addresses import NotAllowed, NotSent
from .connection import Deadline, PinnedBackend

__all__ = [
    "HttpReply",
    "NoUsableAnswer",
    "NotAllowed",
    "NotSent",
    "WebhookReply",
    "post_body",
    "post_signed_json",
    "send_webhook_event",
]

# Room for a result of 64 KiB inside its envelope.
REPLY_LIMIT = 68 * 1024


class NoUsableAnswer(Exception):
    """The request was sent and there is no usable answer, so the receiver may have
    acted on it."""


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """A complete answer. `body` is parsed JSON; None for an empty body."""

    status: int
    body: Any

    def document(self) -> dict[str, Any]:
        """The JSON object of an answer with status 200. Raises `NoUsableAnswer` for any
        other answer."""
        if self.status != HTTPStatus.OK:
            raise NoUsableAnswer(f"the service answered {self.status}")
        if not isinstance(self.body, dict):
            raise NoUsableAnswer("the service did not answer with a JSON object")
        return self.body


def post_signed_json(
    url: str,
    payload: Mapping[str, Any],
    *,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    message: str = "",
    limit: int = REPLY_LIMIT,
) -> WebhookReply:
    """Send `payload` to a tool's service and return the answer, whatever its status.

    `timeout` is in seconds and covers everything from the name look-up to the last
    byte. `limit` is the largest answer in bytes. `message` is the message id of
    Standard Webhooks, which stays the same over retries; without it a new one is made.
    Raises `NotAllowed`, `NotSent`, `NoUsableAnswer`. Caller holds no
    transaction: a slow service would keep its locks.
    """
    body = encode_payload(payload)
    ours = [settings.COUNTERSEAL.webhook_secret]
    signed = build_signature_headers(body, message or ids.new("m"), ours)
    sent = {**(headers or {}), **signed}
    with _open_post(url, body, sent, timeout=timeout) as response:
        raw = _read_body(response, limit)
    return WebhookReply(response.status, _decode_reply(response.status, raw))


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer: the status, two headers, unparsed and cut to 64 and 250 characters,
    and the body if it was read."""

    status: int
    retry_after: str
    location: str
    body: bytes = b""


def send_webhook_event(
    url: str,
    body: bytes,
    *,
    message: str,
    secrets: Sequence[str],
    timeout: float,
    headers: Mapping[str, str] | None = None,
    read: int = 0,
) -> HttpReply:
    """Send `body`, a webhook event, to an agent's endpoint. Only the status and headers
    of the answer are read, and the first `read` bytes of its body, so it cannot be too
    long.

    Agents choose these addresses, so the networks of the tools' services and the gate's
    own ports are refused. The body is signed once with each of `secrets`, the newest
    first. `message` and `timeout` are as in `post_signed_json`, and it raises the same
    errors. Caller holds no transaction.
    """
    sent = {**(headers or {}), **build_signature_headers(body, message, secrets)}
    with _open_post(url, body, sent, timeout=timeout, foreign=True) as response:
        return _build_reply(response, _read_start(response, read) if read else b"")


def post_body(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float,
    foreign: bool = False,
) -> HttpReply:
    """Send `body` with these headers to the service of a notification channel and
    return the answer, whatever its status.

    `foreign` says that somebody outside the deployment wrote the address, so that it
    gets the checks of an agent's endpoint. `timeout` and the errors are as in
    `post_signed_json`. Caller holds no transaction.
    """
    sent = {"Accept-Encoding": "identity", "User-Agent": "Counterseal", **headers}
    with _open_post(url, body, sent, timeout=timeout, foreign=foreign) as response:
        return _build_reply(response, _read_body(response, REPLY_LIMIT))


def encode_payload(payload: Mapping[str, Any]) -> bytes:
    """The canonical JSON of a payload. Raises `NotSent` for one that is not JSON."""
    try:
        return canonical.encode(dict(payload))
    except ValueError as error:
        raise NotSent(f"the payload is not JSON: {error}") from error


def build_signature_headers(
    body: bytes, message: str, secrets: Sequence[str]
) -> dict[str, str]:
    """The request headers of Standard Webhooks, with the present time and one signature
    for each of `secrets`."""
    now = timezone.now()
    signed = [Webhook(secret).sign(message, now, body.decode()) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "Counterseal",
        "webhook-id": message,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signed),
    }


@contextmanager
def _open_post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float,
    foreign: bool = False,
) -> Iterator[httpcore2.Response]:
    """Check an address, POST to it, and give the answer whose body is still to be read.
    Turns errors of the connection into `NoUsableAnswer` if any byte of the request may
    have been sent, else into `NotSent`."""
    deadline = Deadline(timeout)
    target = addresses.parse_url(url)
    counterseal = settings.COUNTERSEAL
    networks = (
        counterseal.callback_networks if foreign else counterseal.webhook_networks
    )
    if foreign:
        own_ports.check_target(target, networks=networks)
    pinned = addresses.resolve_allowed(target, networks=networks, timeout=timeout)
    if foreign:  # guard: push-own-answers
        own_ports.check_answers(target, pinned, timeout=timeout)
    wire = PinnedBackend(pinned, deadline)
    address = httpcore2.URL(
        scheme=target.scheme, host=target.host, port=target.port, target=target.path
    )
    heads = [("Host", target.authority), *headers.items()]
    try:
        with (
            httpcore2.ConnectionPool(network_backend=wire) as pool,
            pool.stream("POST", address, headers=heads, content=body) as response,
        ):
            yield response
    except (httpcore2.ProtocolError, httpcore2.NetworkError, OSError) as error:
        problem = f"{type(error).__name__}: {error}"
        if wire.sent:
            raise NoUsableAnswer(f"no complete answer ({problem})") from error
        raise NotSent(f"no connection to {target.host} ({problem})") from error


def _build_reply(response: httpcore2.Response, body: bytes = b"") -> HttpReply:
    heads = {name.lower(): value.decode("latin1") for name, value in response.headers}
    later, place = heads.get(b"retry-after", ""), heads.get(b"location", "")
    return HttpReply(response.status, later[:64], place[:250], body)


def _read_body(response: httpcore2.Response, limit: int) -> bytes:
    received = bytearray()
    for chunk in response.iter_stream():
        received += chunk
        if len(received) > limit:
            raise NoUsableAnswer(f"the answer is longer than {limit} bytes")
    return bytes(received)


def _read_start(response: httpcore2.Response, limit: int) -> bytes:
    """The first `limit` bytes of a body; the rest is left unread."""
    received = bytearray()
    for chunk in response.iter_stream():
        received += chunk
        if len(received) >= limit:
            break
    return bytes(received[:limit])


def _decode_reply(status: int, raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return canonical.parse(raw)
    except DomainError as error:
        raise NoUsableAnswer(f"the answer ({status}) is not strict JSON") from error
