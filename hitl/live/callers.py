"""Identifies callers before Django is asked, by the credentials of earlier requests.

The process remembers for a while which agent or person a key, token or session belongs
to. A request with an unknown credential counts only for its client address, however
many keys the client invents.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import parse_cookie

from desk.scim.answers import SCIM

from .buffering import App, Message, Receive, Scope, Send

API = "/api/v1/"
ACCESS = "/access/v1/"  # AuthZEN
METRICS = "/metrics"
# Where callers may identify themselves by a key or a token.
KEYED = (API, ACCESS, METRICS, SCIM)
HEADER = b"counterseal-caller"  # set by hitl.middleware; removed before sending
NOBODY = "nobody"
# Keys in the scope: whether a caller was accepted; whether the server failed.
ANSWERED, BROKEN = "counterseal.answered", "counterseal.broken"
MOST_KNOWN = 10_000
REMEMBERED_S = 600.0


class KnownCallers:
    """Recently accepted credentials and the callers they belong to."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def of(self, scope: Scope) -> str:
        """The caller, as `agent:riley` or `person:u-1`; "" if unknown."""
        caller, until = self._known.get(_hash_credential(scope), ("", 0.0))
        return caller if until > time.monotonic() else ""

    def key_of(self, scope: Scope) -> str:
        """The key under which calls are counted: the caller, else the address."""
        return self.of(scope) or format_client_address(scope)

    def learn(self, scope: Scope, caller: str) -> None:
        """Remember the caller of this credential, or forget it for `NOBODY`."""
        credential = _hash_credential(scope)
        self._known.pop(credential, None)
        if caller != NOBODY and credential:
            self._known[credential] = caller, time.monotonic() + REMEMBERED_S
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


class CallerMiddleware:
    """ASGI middleware around the threads: learns the caller from each response and
    removes the header that names it. A response of 500 and above tells nothing about
    the caller."""

    def __init__(self, app: App, callers: KnownCallers) -> None:
        self.app, self.callers = app, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def learn(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                named = [value for name, value in headers if name.lower() == HEADER]
                scope[BROKEN] = message["status"] >= 500
                if named and not scope[BROKEN]:
                    caller = named[0].decode("latin1")
                    self.callers.learn(scope, caller)
                    scope[ANSWERED] = caller != NOBODY
                others = [pair for pair in headers if pair[0].lower() != HEADER]
                message = {**message, "headers": others}
            await send(message)

        await self.app(scope, receive, learn)


def format_client_address(scope: Scope) -> str:
    """The client's address as a key. IPv6 addresses count by their /64 network, because
    one subscriber has the whole network."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ip_address(host)
    except ValueError:
        return f"address:{host}"
    if isinstance(address, IPv6Address):
        return f"address:{ip_network((address, 64), strict=False)}"
    return f"address:{address}"


def find_bearer_key(scope: Scope) -> bytes:
    """The Authorization header, where a key or a token may be; empty elsewhere."""
    if not scope["path"].startswith(KEYED):
        return b""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(b"authorization", b"")


def _hash_credential(scope: Scope) -> bytes:
    """A digest of the call's key, token or session; empty if it carries none. Two
    spellings of one credential have two digests, which both map to the same caller."""
    if given := find_bearer_key(scope):
        return sha256(b"authorization " + given).digest()
    headers = dict(scope["headers"])
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin1"))
    session = cookies.get(settings.SESSION_COOKIE_NAME, "")
    return sha256(b"session " + session.encode()).digest() if session else b""
