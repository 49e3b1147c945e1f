"""The way from a browser to a web process: what a proxy in front may get wrong, and a
question to BASE_URL itself."""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit

from django.conf import settings

MISSING = (
    "The proxy in front of Counterseal does not say that this request came by https:"
    " it must send the header X-Forwarded-Proto."
)
IGNORED = (
    "The proxy in front of Counterseal says in X-Forwarded-Proto that this request came"
    " by https, and the web process does not believe it: its variable"
    " FORWARDED_ALLOW_IPS must name the address of the proxy."
)
PLAIN = (
    "The browser opened this page by https, and the proxy in front of Counterseal says"
    " http in X-Forwarded-Proto: the proxy that ends TLS must say https, and one behind"
    " it must pass that on."
)
PROBE_PATH = "/sign-in/"
PROBE_TIMEOUT_S = 5.0


def probe() -> str:
    """What is wrong with the way to BASE_URL: the proxy's fault, or that nobody answers
    there; "" where the sign-in page comes back. Raises OSError where there is no
    connection."""
    parts = urlsplit(settings.COUNTERSEAL.base_url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if settings.COUNTERSEAL.https:
        trusted = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            host, port, timeout=PROBE_TIMEOUT_S, context=trusted
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", PROBE_PATH)
        answer = connection.getresponse()
        text = answer.read(2_000).decode(errors="replace")
    except http.client.HTTPException as error:
        return f"it does not speak HTTP ({type(error).__name__})"
    finally:
        connection.close()
    for fault in (MISSING, IGNORED, PLAIN):
        if fault in text:
            return fault
    target = answer.getheader("Location", "")
    if target == f"{settings.COUNTERSEAL.base_url}{PROBE_PATH}":
        return "it redirects to itself: the proxy must send X-Forwarded-Proto"
    if answer.status != 200:
        return f"the sign-in page answers {answer.status} instead of 200"
    return ""
