"""What every answer tells the browser, and what no page may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from pytest_django import Settings

from tests.factories import PASSWORD
from tests.guards import ROOT
from tests.security import routes
from tests.security.routes import ROUTES
from tests.security.world import BACKEND, PEOPLE, Who, World

CSP = {
    "default-src 'none'",
    "base-uri 'none'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "img-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
}
TEMPLATES = sorted(Path(ROOT, "templates").rglob("*.html"))
RAISED = ("/stale", "/api/v1/stale", "/broken", "/api/v1/broken")


def policy(response: Any) -> set[str]:
    return {part.strip() for part in response["Content-Security-Policy"].split(";")}


def answers(world: World) -> Iterator[tuple[str, Any]]:
    """An answer of every kind: pages, parts, refusals and errors."""
    for name in ROUTES:
        path = routes.address(name, world.ids)
        for who in (Who.NOBODY, Who.SUPERVISOR, Who.OTHER_OWNER, Who.AGENT):
            yield f"{who} {name}", world.clients[who].get(path)
            yield f"{who} POST {name}", world.clients[who].post(path)
    client = world.clients[Who.REVIEWER]
    for path in ("/nowhere/", "/requests/r-0/", "/queue/?q=%00", "/queue"):
        yield path, client.get(path)
    yield "part", client.get("/queue/", headers={"HX-Request": "true"})
    yield "host", client.get("/queue/", headers={"Host": "evil.example"})


def test_every_answer_has_the_whole_policy(world: World) -> None:
    seen = set()
    for what, response in answers(world):
        seen.add(response.status_code)
        assert policy(response) == CSP, what
        assert response["X-Content-Type-Options"] == "nosniff", what
        assert response["X-Frame-Options"] == "DENY", what
        assert response["Cross-Origin-Opener-Policy"] == "same-origin", what
        assert response["Referrer-Policy"] == "same-origin", what
        # Public keys and metadata may be kept.
        if not what.endswith((" jwks", " manifest", " authzen_metadata")):
            assert "no-store" in response["Cache-Control"], what
            assert "public" not in response["Cache-Control"], what
        assert "Server" not in response.headers, what
    assert seen >= {200, 302, 400, 401, 403, 404, 405}


@pytest.mark.parametrize("path", RAISED)
@pytest.mark.django_db
def test_errors_have_it_too(settings: Settings, path: str) -> None:
    settings.ROOT_URLCONF = "tests.hitl.raising"
    response = Client(raise_request_exception=False).get(path)
    assert response.status_code in {409, 500}
    assert policy(response) == CSP
    assert response["X-Frame-Options"] == "DENY"
    assert "no-store" in response["Cache-Control"]


def test_a_page_and_its_part_are_not_mixed_up(world: World) -> None:
    client = world.clients[Who.SUPERVISOR]
    for name in ("reviews:queue", "reviews:request_detail", "reviews:log"):
        vary = client.get(routes.address(name, world.ids))["Vary"]
        assert {"HX-Request", "Cookie"} <= set(re.split(r",\s*", vary)), name


LEADING = {"src", "href", "action", "hx-get", "hx-post", "srcset"}
OUTWARD = re.compile(r"\s*(javascript|data|vbscript|https?|//)", re.IGNORECASE)


class Inline(HTMLParser):
    """Collects what the policy would refuse, or what would leave the house."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(f"<{tag}>")
        if tag in {"iframe", "object", "embed", "base", "frame", "meta"}:
            self.found += [tag] if tag != "meta" or "http-equiv" in given else []
        for name, value in given.items():
            if name == "style" or name.startswith(("on", "hx-on")):
                self.found.append(f"{tag} {name}")
            if name in LEADING and OUTWARD.match(value):
                self.found.append(f"{tag} {name}={value}")
            if name in {"hx-vals", "hx-headers"} and value.startswith("js:"):
                self.found.append(f"{tag} {name}")


def inline(source: str) -> list[str]:
    parser = Inline()
    parser.feed(source)
    return parser.found


@pytest.mark.parametrize(
    "source",
    [
        "<p style='color: red'>",
        "<style>p{}</style>",
        "<script>alert(1)</script>",
        "<a onclick=x()>",
        "<a href=' javascript:x()'>",
        "<img src=//evil.example/x>",
        "<button hx-on:click=x()>",
        '<p hx-vals="js:{a: 1}">',
        "<base href=/x>",
    ],
)
def test_what_the_policy_refuses_is_found(source: str) -> None:
    assert inline(source)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_holds_what_the_policy_refuses(path: Path) -> None:
    source = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", path.read_text())
    assert inline(source) == []
    stored = path.name == "as_seen.html"  # what our own templates made, proved
    assert stored or "|safe" not in path.read_text()


def test_no_page_holds_what_the_policy_refuses(world: World) -> None:
    """Each page once by somebody who may see it, in turn, and once by somebody who may
    not: that is an error's page."""
    everybody = {Who.NOBODY, *PEOPLE}
    for turn, (name, row) in enumerate(ROUTES.items()):
        path = routes.address(name, world.ids)
        groups = [sorted(row.get & everybody), sorted(everybody - row.get)]
        for who in [group[turn % len(group)] for group in groups if group]:
            response = world.clients[who].get(path)
            if response["Content-Type"].startswith("text/html"):
                assert inline(response.content.decode()) == [], (name, who)


@pytest.fixture
def https(settings: Settings) -> None:
    """What hitl/settings.py makes of an https address."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    settings.SECURE_HSTS_PRELOAD = True


@pytest.mark.django_db
@pytest.mark.usefixtures("https")
def test_plain_http_is_sent_to_https_but_for_health() -> None:
    client = Client()
    moved = client.get("/queue/?q=a")
    assert moved.status_code == 301
    assert moved["Location"] == "https://testserver/queue/?q=a"
    assert client.get("/livez").status_code == 200
    secure = client.get("/sign-in/", secure=True)
    hsts = secure["Strict-Transport-Security"]
    assert hsts == "max-age=31536000; includeSubDomains; preload"


def test_every_cookie_is_bound_to_this_host(world: World) -> None:
    client = Client()
    client.get("/sign-in/")
    client.post("/sign-in/", {"username": "rita", "password": PASSWORD})
    sent = {"target": "thread:riley/t-1", "mode": "paused", "reason": "for a message"}
    client.post("/stop/?agent=riley&thread=t-1", sent)
    assert sorted(client.cookies) == ["__Host-csrf", "__Host-session"]
    for cookie in client.cookies.values():
        assert cookie["secure"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert (cookie["path"], cookie["domain"]) == ("/", "")


def test_signing_out_takes_the_cookie_and_the_session(world: World) -> None:
    client = Client()
    client.force_login(world.people[Who.REVIEWER], BACKEND)
    kept = client.cookies["__Host-session"].value
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").status_code == 302
    client.cookies["__Host-session"] = kept
    assert client.get("/queue/").status_code == 302


def test_sessions_end_within_a_working_day() -> None:
    assert django_settings.SESSION_COOKIE_AGE <= 12 * 60 * 60
    assert not django_settings.DEBUG
