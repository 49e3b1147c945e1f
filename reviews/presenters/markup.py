"""HTML as plain text: the only module that calls bleach. Pure.

HTML is never rendered, and nothing in it is fetched. Resources that it would have
loaded are counted, and text that a mail program would hide is included.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bleach.html5lib_shim import HTML_TAGS, Filter
from bleach.sanitizer import Cleaner

from .arguments import format_count
from .unicode import decode_text, is_same_owner, list_domains

_MARKUP = re.compile(r"<[a-zA-Z!/][^<>]*>")
_NAMES = re.compile(r"</?([a-zA-Z!][^\s<>/]*)")
_KNOWN = HTML_TAGS | {"!doctype", "!--", "center", "font", "tt", "big", "strike"}
# Elements that draw, load, ask for or run something; a letter has none by chance.
_ACTIVE = re.compile(
    r"<(?:a|base|button|dialog|embed|form|h[1-6]|iframe|img|input|link|meta|object"
    r"|script|style|svg|textarea|video)\b[^<>]*>",
    re.IGNORECASE,
)
_HOST = re.compile(r"[a-z0-9.-]{1,80}")
_SKIPPED = frozenset({"script", "style", "title", "template", "noscript"})
_BREAKS = frozenset({"br", "p", "div", "tr", "li", "hr", "pre", "ul", "ol"})
_BREAKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "table", "section", "blockquote"}
_LOADED = frozenset({"img", "source", "link", "iframe", "embed", "video", "audio"})
_TAGS = _SKIPPED | _BREAKS | _LOADED | {"a", "form", "td", "th"}
_HIDES = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0"
    r"|\shidden[\s>=]",
    re.IGNORECASE,
)
_SHOWN_HOSTS = 5
# Parsing takes time that grows with the square of the depth.
MOST_TAGS, MOST_SIGNS = 1500, 6000
_SIGNS = re.compile(r"[<=&]")
# A link of HTML and one of Markdown, with where it leads and its text.
_ANCHOR = re.compile(
    r"<a\b[^<>]{0,500}?\bhref\s{0,9}=\s{0,9}[\"']?([^\"'<>\s]{1,2000})[^<>]{0,500}>"
    r"(.{0,500}?)</a\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]{1,500})\]\(\s{0,9}<?([^\s<>()]{1,2000})")
# `https://ours.example@evil.example`: what stands before the "@" is no host.
_USER_AS_HOST = re.compile(r"\bhttps?://[^\s/?#@]{0,200}\.[^\s/?#@]{0,200}@", re.I)
_SHOWN_HOST = re.compile(r"^\s*(?:https?://|www\.)|@", re.IGNORECASE)


@dataclass(slots=True)
class HtmlReading:
    """The text of an HTML source, and what it would have loaded."""

    text: str = ""
    links: int = 0
    images: int = 0
    forms: int = 0
    hosts: list[str] = field(default_factory=list)
    hides: bool = False  # it may hide text from the reader of the mail
    is_read: bool = True

    @property
    def summary(self) -> str:
        """A note for the page: `HTML shown as text, without 4 links and 1 image`."""
        if not self.is_read:
            return "HTML not read: not a normal email"
        counts = ((self.links, "link"), (self.images, "image"), (self.forms, "form"))
        counted = [format_count(number, noun) for number, noun in counts if number]
        *most, last = counted or [""]
        left = " and ".join(filter(None, (", ".join(most), last)))
        return "HTML shown as text" + (f", without {left}" if left else "")

    @property
    def addresses(self) -> str:
        """The hosts that it would have contacted, untrusted text."""
        return format_hosts(self.hosts)


def is_html(text: str) -> bool:
    """Whether a text contains tags; `a < b` does not."""
    return _MARKUP.search(text) is not None


def has_active_elements(text: str) -> bool:
    """Whether a text contains elements that would do something on a page."""
    return _ACTIVE.search(text) is not None


def is_html_document(text: str) -> bool:
    """Whether every tag is one of HTML, so that parsing loses nothing but tags.
    `<dana@mail.example>` and `<module>` are not HTML."""
    names = {name.lower() for name in _NAMES.findall(text)}
    return bool(names - {"!doctype", "!--"}) and names <= _KNOWN


def parse_html(source: str) -> HtmlReading:
    """Extract the text of an HTML source, and count what it would have loaded. Never
    raises: a source that cannot be parsed as HTML is returned as text."""
    reading = HtmlReading(hides=_HIDES.search(source) is not None)
    if source.count("<") > MOST_TAGS or len(_SIGNS.findall(source)) > MOST_SIGNS:
        return HtmlReading(text=source, is_read=False)
    pieces: list[str] = []
    cleaner = Cleaner(
        tags=_TAGS,
        attributes=lambda tag, name, value: name in ("href", "src", "action"),
        protocols=frozenset({"http", "https", "mailto"}),
        strip=True,
        filters=[partial(_TextExtractor, reading=reading, pieces=pieces)],
    )
    try:
        cleaner.clean(source)
    except (RecursionError, ValueError, AssertionError):
        return HtmlReading(text=source, is_read=False)
    reading.text = "".join(pieces).strip()
    return reading


class _TextExtractor(Filter):  # type: ignore[misc]  # bleach has no types
    """Takes the text out of bleach's token stream and passes nothing on."""

    def __init__(self, source: Any, reading: HtmlReading, pieces: list[str]) -> None:
        super().__init__(source)
        self.reading = reading
        self.pieces = pieces
        self.skipping = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for token in super().__iter__():
            self._take(token)
        return iter(())

    def _take(self, token: Mapping[str, Any]) -> None:
        kind = token["type"]
        if kind in ("StartTag", "EmptyTag"):
            self._open(token)
        elif kind == "EndTag":
            self.skipping -= token["name"] in _SKIPPED and self.skipping > 0
            self.pieces += "\n" if token["name"] in _BREAKS else ""
        elif not self.skipping and kind == "Entity":
            self.pieces.append(html.unescape(f"&{token['name']};"))
        elif not self.skipping and kind in ("Characters", "SpaceCharacters"):
            self.pieces.append(token["data"])

    def _open(self, token: Mapping[str, Any]) -> None:
        name, reading = token["name"], self.reading
        self.skipping += name in _SKIPPED and token["type"] == "StartTag"
        reading.links += name == "a"
        reading.images += name in _LOADED
        reading.forms += name == "form"
        self.pieces += "\n" if name in _BREAKS else ""
        for url in token["data"].values():
            host = parse_host(url)
            if host and host not in reading.hosts:
                reading.hosts.append(host)


def has_misleading_link(text: str, ours: Collection[str] = ()) -> bool:
    """Whether a link leads to another host than its text names, or hides its host
    behind another one. Of a text that is not itself an address only the names of
    `ours` count, because `manual.pdf` is no host."""
    links = [(match[1], match[2]) for match in _ANCHOR.finditer(text)]
    links += [(match[2], match[1]) for match in _MARKDOWN_LINK.finditer(text)]
    return _USER_AS_HOST.search(decode_text(text)) is not None or any(
        _is_misleading(decode_text(target), _MARKUP.sub("", shown), ours)
        for target, shown in links
    )


def _is_misleading(target: str, shown: str, ours: Collection[str]) -> bool:
    is_address = _SHOWN_HOST.search(shown) is not None
    named = [
        domain
        for domain in list_domains(shown)[:_SHOWN_HOSTS]
        if is_address or domain in ours
    ]
    host = next(iter(list_domains(_PATH.sub("", target))), "")
    return bool(named and host) and not any(
        is_same_owner(host, domain) for domain in named
    )


# What follows the host of an address.
_PATH = re.compile(r"(?<![:/])[/?#].*", re.DOTALL)


def parse_host(url: str) -> str:
    """The host of a URL; fixed words if the URL or the host is not in plain
    characters."""
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:
        host = "?"
    return host if not host or _HOST.fullmatch(host) else "an unreadable address"


def format_hosts(hosts: Sequence[str]) -> str:
    """The first hosts, and how many more there are."""
    more = len(hosts) - _SHOWN_HOSTS
    rest = [format_count(more, "more host")] if more > 0 else []
    return ", ".join([*hosts[:_SHOWN_HOSTS], *rest])
