"""Which middleware a program's call of the API runs, and which it passes."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils.module_loading import import_string
from pytest_django import Settings

from hitl.page_middleware import PagesOnly, is_program_call
from tests.conftest import Gate
from tests.factories import propose
from tests.security.world import BACKEND

KEY = {"Authorization": "Bearer cs_unknown"}
# What every request runs. The list is in full, so that nothing joins it by accident.
PROGRAMS = [
    "hitl.forwarding.ProxyHeaders",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "hitl.middleware.RequestContext",
    "hitl.middleware.ContentPolicy",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "hitl.middleware.Boundary",
    "hitl.middleware.ProbesByAddress",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "hitl.page_middleware.LoginRequired",
    "hitl.middleware.DomainErrors",
    "axes.middleware.AxesMiddleware",
]


def test_a_program_runs_these_and_no_other() -> None:
    run = [
        name
        for name in settings.MIDDLEWARE
        if not issubclass(import_string(name), PagesOnly)
    ]
    assert run == PROGRAMS


@pytest.mark.parametrize(
    ("path", "headers", "program"),
    [
        ("/api/v1/whoami", KEY, True),
        ("/api/v1/whoami", {"Authorization": ""}, True),
        ("/api/v1/whoami", {**KEY, "Cookie": "a=b"}, True),
        ("/api/v1/whoami", {"Cookie": "a=b"}, False),
        ("/api/v1/whoami", {}, False),
        ("/queue/", KEY, False),
        ("/apis", KEY, False),
    ],
)
def test_a_program_is_known_by_path_and_header(
    path: str, headers: dict[str, str], program: bool
) -> None:
    assert is_program_call(RequestFactory().get(path, headers=headers)) is program


GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture
def reviewer(gate: Gate) -> Any:
    propose(gate.agent)
    client = Client()
    client.force_login(gate.rita, BACKEND)
    return client


def test_a_page_is_compressed_and_says_so(reviewer: Any) -> None:
    plain, packed = reviewer.get("/queue/"), reviewer.get("/queue/", headers=GZIP)
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) == int(packed["Content-Length"])
    assert len(packed.content) < len(plain.content) / 3
    assert b"</html>" in gzip.decompress(packed.content)


def test_two_copies_of_a_page_differ_in_length(reviewer: Any) -> None:
    lengths = {len(reviewer.get("/queue/", headers=GZIP).content) for _ in range(20)}
    assert len(lengths) > 1


@pytest.mark.parametrize("sender", ["cross-site", "same-site"])
def test_a_page_that_another_site_caused_is_not_compressed(
    reviewer: Any, sender: str
) -> None:
    response = reviewer.get("/queue/", headers={**GZIP, "Sec-Fetch-Site": sender})
    assert response.status_code == 200
    assert "Content-Encoding" not in response


@pytest.mark.parametrize("path", ["/events/", "/api/v1/openapi.json", "/readyz"])
def test_nothing_but_a_page_is_compressed(reviewer: Any, path: str) -> None:
    response = reviewer.get(path, headers=GZIP)
    assert response.status_code == 200
    assert "Content-Encoding" not in response


@login_not_required
def show_request(request: HttpRequest) -> HttpResponse:
    """Tell what the middleware has added to the request."""
    parts = ("session", "user", "htmx", "_messages", "request_id")
    return HttpResponse(" ".join(part for part in parts if hasattr(request, part)))


def guarded(request: HttpRequest) -> HttpResponse:
    raise AssertionError("reached without a sign-in")


@pytest.fixture
def client(settings: Settings) -> Client:
    settings.ROOT_URLCONF = "tests.hitl.showing"
    return Client()


def test_a_program_has_no_session_and_nothing_of_a_page(client: Client) -> None:
    assert client.get("/api/v1/shown", headers=KEY).content == b"request_id"
    page = client.get("/api/v1/shown").content.split()
    assert set(page) == {b"session", b"user", b"htmx", b"_messages", b"request_id"}


def test_a_view_that_requires_a_sign_in_stays_shut_to_programs(client: Client) -> None:
    response = client.get("/api/v1/guarded", headers=KEY)
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in/")


def test_a_page_calls_the_api_with_its_session_and_a_program_without(
    gate: Gate,
) -> None:
    client: Any = Client()
    path = f"/api/v1/requests/{propose(gate.agent).request.pk}"
    client.force_login(gate.rita, BACKEND)
    assert client.get(path).status_code == 200
    # A key decides alone: the session beside it gives nothing.
    assert client.get(path, headers=KEY).status_code in {401, 403}


UNREADABLE = (
    "", " ", "Bearer", "Bearer ", "bearer", "Basic", "Basic dXNlcjpwYXNz", "Bearer  ",
    "Bearer a,Bearer b", "Bearer \xe9", "Token x", "=",
)  # fmt: skip
SIGNED_IN_ALIKE = [
    "/api/v1/requests", "/api/v1/batches", "/api/v1/standing-grants",
    "/api/v1/proposals", "/api/v1/whoami",
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("path", SIGNED_IN_ALIKE)
@pytest.mark.parametrize("header", UNREADABLE)
def test_a_header_that_names_nobody_is_401_even_with_a_session(
    gate: Gate, path: str, header: str
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    answer = client.get(path, headers={"Authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_key")


def test_nobody_signs_in_again_after_a_change_of_the_key(
    gate: Gate, client: Client, settings: Settings
) -> None:
    settings.ROOT_URLCONF = "hitl.urls"
    client.force_login(gate.rita, BACKEND)
    former, settings.SECRET_KEY = settings.SECRET_KEY, "k" * 50
    settings.SECRET_KEY_FALLBACKS = [former]
    assert client.get(reverse("reviews:queue")).status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    settings.SECRET_KEY = "l" * 50
    assert client.get(reverse("reviews:queue")).status_code == 302
