from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from hitl import middleware, problems
from reviews.models import Stop
from tests.conftest import Gate
from tests.factories import propose
from tests.security.world import BACKEND

HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(settings: Settings) -> Client:
    settings.ROOT_URLCONF = "tests.hitl.raising"
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("path", ["/api/v1/away", "/away"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_while_the_database_is_away_everybody_is_asked_to_return(
    client: Client, path: str, headers: dict[str, str]
) -> None:
    response = client.get(path, headers=headers)
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    text = response.content.decode()
    assert "may not have been recorded" in text
    assert "db.internal" not in text


@pytest.mark.parametrize(
    ("state", "away"),
    [(None, True), ("08006", True), ("53100", True), ("57P01", True), ("57014", False)],
)
def test_only_a_server_that_cannot_serve_is_away(state: str | None, away: bool) -> None:
    error = OperationalError("it says why")
    error.__cause__ = type("Failure", (psycopg.Error,), {"sqlstate": state})()
    assert problems.is_database_away(error) is away
    assert not problems.is_database_away(ValueError())


def test_a_refusal_of_the_api_is_a_problem(client: Client) -> None:
    response = client.get("/api/v1/stale")
    assert response.status_code == 409
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["code"] == "stale"
    assert body["title"] == "Conflict"
    assert body["errors"] == [{"path": "version", "message": "is 2 now"}]


def test_retry_after_is_said_in_body_and_header(client: Client) -> None:
    response = client.get("/api/v1/too_many")
    assert response.status_code == 429
    assert response["Retry-After"] == "7"
    assert response.json()["retry_after"] == 7


@pytest.mark.django_db
def test_a_refusal_of_a_page_is_a_page(client: Client) -> None:
    response = client.get("/stale")
    assert response.status_code == 409
    assert b"<!doctype html>" in response.content.lower()
    assert b"changed while you were reading" in response.content


@pytest.mark.django_db
def test_a_refusal_for_htmx_is_the_notice_alone(client: Client) -> None:
    response = client.get("/stale", headers=HTMX)
    assert response.status_code == 409
    assert response["HX-Retarget"] == "#notice"
    assert b"<html" not in response.content.lower()
    assert b'id="notice"' in response.content
    assert "HX-Request" in response["Vary"]


@pytest.mark.django_db
def test_a_boosted_link_gets_the_page(client: Client) -> None:
    response = client.get("/stale", headers={**HTMX, "HX-Boosted": "true"})
    assert b"<html" in response.content.lower()


@pytest.mark.parametrize("path", ["/broken", "/api/v1/broken"])
@pytest.mark.django_db
def test_an_unknown_error_is_a_reference_and_no_detail(
    client: Client, path: str
) -> None:
    response = client.get(path)
    assert response.status_code == 500
    assert b"secret value" not in response.content
    assert response["X-Request-Id"].encode() in response.content


def test_an_unknown_address_of_the_api_is_a_problem(client: Client) -> None:
    response = client.get("/api/v1/nowhere")
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_the_request_id_is_ours(client: Client) -> None:
    forged = {"X-Request-Id": "forged"}
    first = client.get("/fine", headers=forged)["X-Request-Id"]
    second = client.get("/fine")["X-Request-Id"]
    assert len({first, second, "forged"}) == 3


def test_every_line_of_a_request_has_its_id() -> None:
    def view(request: object) -> HttpResponse:
        seen.update(get_contextvars())
        return HttpResponse()

    seen: dict[str, str] = {}
    request = RequestFactory().get("/orders/?q=private")
    with capture_logs() as lines:
        response = middleware.RequestContext(view)(request)
    assert seen["request_id"] == response["X-Request-Id"]
    (line,) = lines
    assert line["path"] == "/orders/"
    assert "private" not in json.dumps(line)


@pytest.mark.django_db(transaction=True)
def test_a_lock_waited_for_too_long_is_a_conflict() -> None:
    name = connection.settings_dict["NAME"]
    other = psycopg.connect(
        **{**connection.get_connection_params(), "dbname": name}, autocommit=True
    )
    with other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
        with pytest.raises(OperationalError) as caught:
            _lock_in_vain()
    _check_conflict(caught.value)


def _check_conflict(error: Exception) -> None:
    response = middleware.DomainErrors(
        lambda request: HttpResponse()
    ).process_exception(RequestFactory().get("/api/v1/x"), error)
    assert response is not None
    assert response.status_code == 409
    assert json.loads(response.content)["code"] == "conflict"


def _lock_in_vain() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '50ms'")
        cursor.execute("SELECT pg_advisory_xact_lock(7)")


@pytest.mark.django_db(transaction=True)
def test_a_deadlock_is_a_conflict() -> None:
    both_have_one = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        pairs = [(7, 8), (8, 7)]
        found = [pool.submit(_lock_both, both_have_one, *pair) for pair in pairs]
        errors = [error for one in found if (error := one.exception()) is not None]
    (error,) = errors
    assert isinstance(error, Exception)
    _check_conflict(error)


def _lock_both(both_have_one: threading.Barrier, first: int, second: int) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [first])
            both_have_one.wait(60)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [second])
    finally:
        connection.close()


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "kind", "cause"),
    [
        (b"a=x%00y", FORM, "A field has a character that cannot be stored"),
        (b"%00=x", FORM, "A field has a character that cannot be stored"),
        (b"&".join(b"f%d=" % n for n in range(1100)), FORM, "more than 1,000 fields"),
        (b"a=x", f"{FORM}; charset=utf-16", "A form must be sent in UTF-8."),
        (
            b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\\ud800'
            b"\r\n--b--\r\n",
            "multipart/form-data; boundary=b; charset=raw_unicode_escape",
            "A form must be sent in UTF-8.",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="f"; filename="a%00.txt"'
            b"\r\n\r\nx\x00\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
            "",  # a file may have any bytes, and its name is harmless
        ),
        (b"x", "multipart/form-data", "The form is malformed."),
    ],
    ids=["value", "name", "many", "charset", "multipart", "file", "malformed"],
)
def test_a_form_that_cannot_be_read_is_refused_with_its_cause(
    gate: Gate, body: bytes, kind: str, cause: str
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(gate.sue, BACKEND)
    answer = client.post("/stop/", body, content_type=kind)
    text = answer.content.decode()
    if not cause:
        assert answer.status_code == 422
        return
    assert answer.status_code == 400
    assert cause in text
    assert "Nothing was done." in text
    assert "Check the address" not in text


def test_a_query_is_read_as_utf_8_whatever_the_request_says(gate: Gate) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    kind = "text/plain; charset=unicode_escape"
    answer = client.get("/queue/?q=%5Cx00", headers={"content-type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("a\r\n" * 999 + "ab", 302),  # 2,000 characters as the browser counts them
        ("a\r\n" * 999 + "abc", 422),
        ("\U0001f600" * 1000, 302),
        ("\U0001f600" * 1000 + "a", 422),
    ],
    ids=["lines", "one more", "emoji", "one after"],
)
def test_lengths_are_counted_as_the_browser_counts_them(
    gate: Gate, text: str, status: int
) -> None:
    propose(gate.agent)
    client = Client()
    client.force_login(gate.adam, BACKEND)
    sent = {"target": "agent:riley", "mode": "stopped", "reason": text}
    assert client.post("/stop/", sent).status_code == status
    if status == 302:
        assert Stop.objects.get().reason == text.replace("\r", "")
