"""Who calls, as far as the process knows before it asks Django: whose a key, a token or
a session is was said with an earlier answer, and is remembered for a while.

Whoever is not known by that, however many keys they make up, is nobody but an address.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import parse_cookie

from .buffering import App, Message, Receive, Scope, Send

API = "/api/v1/"
HEADER = b"holdpoint-caller"  # from hitl.middleware; nobody outside sees it
NOBODY = "nobody"
# In the scope: somebody was let in; nobody could be, for something is broken.
ANSWERED, BROKEN = "holdpoint.answered", "holdpoint.broken"
MOST_KNOWN = 10_000
STANDS_S = 600.0


class Callers:
    """The credentials that were accepted not long ago, and whose they are."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def of(self, scope: Scope) -> str:
        """`agent:riley`, `person:u-1`; empty for somebody who is not known."""
        caller, until = self._known.get(_credential(scope), ("", 0.0))
        return caller if until > time.monotonic() else ""

    def key_of(self, scope: Scope) -> str:
        """What calls are counted by: the caller, else the address."""
        return self.of(scope) or address_of(scope)

    def learn(self, scope: Scope, caller: str) -> None:
        """That an answer was this caller's, or nobody's."""
        credential = _credential(scope)
        self._known.pop(credential, None)
        if caller != NOBODY and credential:
            self._known[credential] = caller, time.monotonic() + STANDS_S
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


class Introduced:
    """ASGI middleware right around the threads: learns from every answer whose it was,
    and says no more of it. An answer of 500 and more says nothing of who called."""

    def __init__(self, app: App, callers: Callers) -> None:
        self.app, self.callers = app, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def learn(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                said = [value for name, value in headers if name.lower() == HEADER]
                scope[BROKEN] = message["status"] >= 500
                if said and not scope[BROKEN]:
                    caller = said[0].decode("latin1")
                    self.callers.learn(scope, caller)
                    scope[ANSWERED] = caller != NOBODY
                kept = [pair for pair in headers if pair[0].lower() != HEADER]
                message = {**message, "headers": kept}
            await send(message)

        await self.app(scope, receive, learn)


def address_of(scope: Scope) -> str:
    """Where the client is. One subscriber has a whole network of IPv6 addresses."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ip_address(host)
    except ValueError:
        return f"address:{host}"
    if isinstance(address, IPv6Address):
        return f"address:{ip_network((address, 64), strict=False)}"
    return f"address:{address}"


def _credential(scope: Scope) -> bytes:
    """A digest of the key, token or session that a call carries; empty for none. Of two
    spellings each is learnt for itself, and both are the same caller's."""
    headers = dict(scope["headers"])
    given = headers.get(b"authorization", b"") if scope["path"].startswith(API) else b""
    if given:
        return sha256(b"authorization " + given).digest()
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin1"))
    session = cookies.get(settings.SESSION_COOKIE_NAME, "")
    return sha256(b"session " + session.encode()).digest() if session else b""
