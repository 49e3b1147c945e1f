"""HTML as tests compare it: independent of how a template breaks its lines."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

_STEPS = (
    (re.compile(r"\s+"), " "),
    (re.compile(r" (/?>)"), r"\1"),  # before the end of a tag
    (re.compile(r"(<[^/!][^<>]*>) "), r"\1"),  # after an opening tag
    (re.compile(r" (</)"), r"\1"),  # before a closing tag
    (re.compile(r"> <"), "><"),
)


def flatten(html: str | bytes) -> str:
    """Put HTML on one line without white space beside tags.

    The result is for comparison only: a space between two inline elements, which a
    browser draws, is gone too.
    """
    text = html.decode() if isinstance(html, bytes) else html
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return text.strip()


def read_page(response: Any) -> str:
    """Flatten the body of a response of Django's test client or of httpx2."""
    return flatten(response.content)


def read_text(response: Any, testid: str = "") -> str:
    """Read the words a person sees, without tags, in one element or the whole body.

    `testid` selects the element by its `data-testid`; AssertionError if it is absent.
    """
    html = read_page(response)
    if testid:
        html = find_element(html, testid)
    html = re.sub(r"<(script|style|template)\b.*?</\1>", "", html)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def read_shown(response: Any, name: str = "shown") -> str:
    """The value of a hidden field, with which a form says what its page showed."""
    html = read_page(response)
    found = re.search(rf'name="{re.escape(name)}" value="([^"]*)"', html)
    assert found, f"no field is named {name}"
    return found[1]


def find_element(html: str, testid: str) -> str:
    """Cut one element out of flattened HTML by its `data-testid`."""
    opening = re.search(
        rf'<(\w+)\b[^<>]*data-testid="{re.escape(testid)}"[^<>]*>', html
    )
    assert opening, f"no element has the data-testid {testid}"
    tag, depth = opening[1], 0
    for one in re.finditer(rf"<(/?){tag}\b[^<>]*>", html[opening.start() :]):
        depth += -1 if one[1] else 1
        if depth == 0:
            return html[opening.start() : opening.start() + one.end()]
    return html[opening.start() :]
