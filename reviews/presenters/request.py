"""An HTTP request in parts: method, host, path, query, headers, body. Pure.

Nothing uses the network. The tool's reader says which hosts were called before
(`known_hosts`). The value of a header that carries a credential is concealed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from . import domains
from .arguments import is_secret
from .common import Subject, present
from .shapes import Cell, Pair, Presentation, Row, Tag
from .unicode import is_hidden
from .views import Group, View

MOST_PAIRS = 200  # parameters of a query
SAFE = {"GET", "HEAD", "OPTIONS"}
_INTERNAL = re.compile(r"(^|\.)(localhost|local|internal|intranet|lan|corp|home|svc)$")
_ODD = re.compile(r"[\s\\<>\"^`{|}]")
_BARE = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/|\?|$)")
_PORTS = {"https": 443, "http": 80}


class Unreadable(Exception):
    """The address is invalid or ambiguous; the message says why."""


def show(subject: Subject) -> Presentation:
    """Present the request line first, then query, headers and body as groups of
    rows."""
    subject = replace(subject, secret=frozenset(_secrets(subject)))
    try:
        parts = read(subject.text("url"))
    except Unreadable as error:
        hidden = [subject.undecoded("url", f"Not decoded: {error}.")]
        tag = Tag("The address was not decoded", loud=True)
        return present(
            subject, tag, *_tags(subject), hidden=hidden, views=_views(subject)
        )
    line = Group("The request", tuple(_line(subject, parts)))
    query = Group("Query", tuple(_query(parts)))
    return present(
        subject,
        *_tags(subject),
        *_place(subject, parts),
        size=(_to(subject, parts),),
        views=[line, *([query] if query.rows else []), *_views(subject)],
    )


def read(url: str) -> Any:
    """Parse an absolute http or https address. Raises `UnreadableAddress`."""
    if _ODD.search(url) or any(map(is_hidden, url)):
        raise Unreadable("it has characters that no address has")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # reading it raises for what is no port
    except ValueError as error:
        raise Unreadable("it is no address") from error
    if parts.query.count("&") > MOST_PAIRS:
        raise Unreadable(f"it has more than {MOST_PAIRS} parameters")
    if not parts.scheme and _BARE.match(url):
        raise Unreadable("it has no scheme: write https:// or http:// before it")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise Unreadable("it is no http or https address")
    return parts


def _line(subject: Subject, parts: Any) -> Iterator[Row]:
    host = parts.hostname
    yield from subject.listed("method")
    other = "" if domains.is_plain(host) else domains.other_form(host)
    note = "the name is" if other else ""
    warns = tuple(_host_warns(parts))
    yield Row("Host", "url.host", Cell(host), note, warns, other)
    if parts.port and parts.port != _PORTS[parts.scheme]:
        yield Row("Port", "url.port", Cell(str(parts.port), "number").settled)
    path = unquote(parts.path)
    climbs = ("Climbs with ..",) if ".." in path.split("/") else ()
    yield Row("Path", "url.path", Cell(path or "/"), warns=climbs)
    if parts.fragment:
        yield Row("Fragment", "url.fragment", Cell(parts.fragment))


def _query(parts: Any) -> Iterator[Row]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    for number, (name, value) in enumerate(pairs):
        warns = ("A key in the address",) if is_secret(name) else ()
        yield Row(name, f"url.query[{number}]", Cell(value), warns=warns)


def _views(subject: Subject) -> list[View]:
    groups = [
        Group(title, tuple(subject.listed(role)))
        for title, role in (
            ("Query", "query"),
            ("Headers", "headers"),
            ("Body", "body"),
        )
    ]
    return [group for group in groups if group.rows]


def _secrets(subject: Subject) -> Iterator[str]:
    for leaf in subject.under("headers"):
        name = re.split(r"[.\[]", leaf.path)[-1].strip('"]')
        if is_secret(name):
            yield leaf.path


def _tags(subject: Subject) -> Iterator[Tag]:
    method = subject.text("method").upper()
    if method == "DELETE":
        yield Tag("Deletes", loud=True)
    elif method and method not in SAFE:
        yield Tag("Changes something")
    if subject.secret:
        yield Tag("Sends a credential", loud=True)


def _place(subject: Subject, parts: Any) -> Iterator[Tag]:
    known = subject.read("known_hosts")
    method = subject.text("method").upper() or "GET"
    if isinstance(known, list) and parts.hostname not in known:
        new = "New host" if method in SAFE else f"{_word(method)} to a new host"
        yield Tag(new, loud=True)
    for said in _host_warns(parts):
        yield Tag(said, loud=True)


def _word(method: str) -> str:
    return method if method.isascii() and method.isalpha() else "A call"


def _host_warns(parts: Any) -> Iterator[str]:
    host = parts.hostname
    if is_private(host):
        yield "A private address"
    if "@" in parts.netloc:
        yield "A name before the host"
    if parts.scheme == "http":
        yield "Not encrypted"
    if not domains.is_plain(host):
        yield "A host in another alphabet"


def is_private(host: str) -> bool:
    """Whether the host is, or may be, internal: a private address, or no public name.

    Also true for an address in a notation that only computers use, such as hexadecimal.
    """
    if _INTERNAL.search(host) or "." not in host:
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return re.fullmatch(r"[0-9a-fx.]+", host) is not None


def _to(subject: Subject, parts: Any) -> Pair:
    method = subject.text("method").upper() or "GET"
    return Pair(_word(method), parts.hostname, parts.scheme, untrusted=True)
