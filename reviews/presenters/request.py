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

from . import unicode
from .arguments import is_secret_name
from .common import Subject, build_loud_tags, build_presentation
from .shapes import Cell, Presentation, SizeFigure, Tag, ValueRow
from .unicode import is_hidden
from .views import DedicatedView, GroupView

MOST_PAIRS = 200  # parameters of a query
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_INTERNAL = re.compile(r"(^|\.)(localhost|local|internal|intranet|lan|corp|home|svc)$")
_INVALID_CHARACTERS = re.compile(r"[\s\\<>\"^`{|}]")
_WITHOUT_SCHEME = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/|\?|$)")
_PORTS = {"https": 443, "http": 80}


class UnreadableAddress(Exception):
    """The address is invalid or ambiguous; the message says why."""


def show(subject: Subject) -> Presentation:
    """Present the request line first, then query, headers and body as groups of
    rows."""
    subject = replace(subject, secret=list_secret_paths(subject))
    try:
        parts = parse_address(subject.text("url"))
    except UnreadableAddress as error:
        hidden = [subject.undecoded("url", f"Not decoded: {error}.")]
        tag = Tag("The address was not decoded", loud=True)
        return build_presentation(
            subject,
            tag,
            *_build_method_tags(subject),
            hidden=hidden,
            views=_build_argument_groups(subject),
        )
    return build_presentation(
        subject,
        *_build_method_tags(subject),
        *_build_host_tags(subject, parts),
        size=(_build_target_figure(subject, parts),),
        views=[
            GroupView("The request", tuple(_build_request_rows(subject, parts))),
            GroupView("Query", tuple(_build_query_rows(parts))),
            *_build_argument_groups(subject),
        ],
    )


def parse_address(url: str) -> Any:
    """Parse an absolute http or https address. Raises `UnreadableAddress`."""
    if _INVALID_CHARACTERS.search(url) or any(map(is_hidden, url)):
        raise UnreadableAddress(
            "it contains characters that are not valid in an address"
        )
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # reading it raises for what is no port
    except ValueError as error:
        raise UnreadableAddress("it is not an address") from error
    if parts.query.count("&") > MOST_PAIRS:
        raise UnreadableAddress(f"it has more than {MOST_PAIRS} parameters")
    if not parts.scheme and _WITHOUT_SCHEME.match(url):
        raise UnreadableAddress("it has no scheme: add https:// or http://")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UnreadableAddress("it is not an http or https address")
    return parts


def _build_request_rows(subject: Subject, parts: Any) -> Iterator[ValueRow]:
    host = parts.hostname
    yield from subject.listed("method")
    other = "" if unicode.is_plain_domain(host) else unicode.to_other_form(host)
    note = "the name is" if other else ""
    warns = tuple(_list_host_warnings(parts))
    yield ValueRow("Host", "url.host", Cell(host), note, warns, other)
    if parts.port and parts.port != _PORTS[parts.scheme]:
        yield ValueRow("Port", "url.port", Cell(str(parts.port), "number").settled)
    path = unquote(parts.path)
    climbs = ("Goes up with ..",) if ".." in path.split("/") else ()
    yield ValueRow("Path", "url.path", Cell(path or "/"), warns=climbs)
    if parts.fragment:
        yield ValueRow("Fragment", "url.fragment", Cell(parts.fragment))


def _build_query_rows(parts: Any) -> Iterator[ValueRow]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    for number, (name, value) in enumerate(pairs):
        warns = ("A key in the address",) if is_secret_name(name) else ()
        yield ValueRow(name, f"url.query[{number}]", Cell(value), warns=warns)


def _build_argument_groups(subject: Subject) -> list[DedicatedView]:
    return [
        GroupView(role.capitalize(), tuple(subject.listed(role)))
        for role in ("query", "headers", "body")
    ]


def list_secret_paths(subject: Subject) -> frozenset[str]:
    """The paths of the headers whose names suggest a credential."""
    return frozenset(
        leaf.path
        for leaf in subject.under("headers")
        if is_secret_name(re.split(r"[.\[]", leaf.path)[-1].strip('"]'))
    )


def _build_method_tags(subject: Subject) -> Iterator[Tag]:
    method = subject.text("method").upper()
    if method == "DELETE":
        yield Tag("Deletes", loud=True)
    elif method and method not in SAFE_METHODS:
        yield Tag("Changes something")
    if subject.secret:
        yield Tag("Sends a credential", loud=True)


def _build_host_tags(subject: Subject, parts: Any) -> Iterator[Tag]:
    known = subject.read("known_hosts")
    method = subject.text("method").upper() or "GET"
    is_new = isinstance(known, list) and parts.hostname not in known
    to_new = f"{_format_method(method)} to a new host"
    yield from build_loud_tags(
        (is_new, "New host" if method in SAFE_METHODS else to_new),
        *((True, warning) for warning in _list_host_warnings(parts)),
    )


def _format_method(method: str) -> str:
    return method if method.isascii() and method.isalpha() else "Request"


def _list_host_warnings(parts: Any) -> Iterator[str]:
    host = parts.hostname
    if is_private_host(host):
        yield "A private address"
    if "@" in parts.netloc:
        yield "A user name before the host"
    if parts.scheme == "http":
        yield "Not encrypted"
    if not unicode.is_plain_domain(host):
        yield "A host in another alphabet"


def is_private_host(host: str) -> bool:
    """Whether the host is, or may be, internal: a private address, or no public name.
    Also true for an address in a notation that only computers use, such as
    hexadecimal."""
    if _INTERNAL.search(host) or "." not in host:
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return re.fullmatch(r"[0-9a-fx.]+", host) is not None


def _build_target_figure(subject: Subject, parts: Any) -> SizeFigure:
    method = subject.text("method").upper() or "GET"
    return SizeFigure(
        _format_method(method), parts.hostname, parts.scheme, untrusted=True
    )
