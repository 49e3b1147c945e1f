"""`MAIL_URL` as Django wants it; without one, mail is written to files in `STATE`."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

BACKENDS = "django.core.mail.backends"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


class Mail(NamedTuple):
    """Where mail goes."""

    backend: str
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def config(url: str) -> Mail:
    """`smtp://`, `smtp+tls://` (STARTTLS) or `smtps://`, checked by the environment."""
    if not url:
        return Mail(f"{BACKENDS}.filebased.EmailBackend")
    parts = urlsplit(url)
    return Mail(
        f"{BACKENDS}.smtp.EmailBackend",
        host=parts.hostname or "",
        port=parts.port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+tls",
        tls=parts.scheme == "smtps",
    )
