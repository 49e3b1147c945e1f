from __future__ import annotations

import pytest
from django.core.exceptions import SuspiciousOperation
from django.test import Client, RequestFactory

from hitl import problems, views
from journal.errors import InvalidInput, build_field_error
from policies.models import Person

PASSWORD = "correct-horse-battery"


@pytest.fixture
def person(db: None) -> Person:
    return Person.objects.create_user("rita", password=PASSWORD)


def sign_in(client: Client, password: str, name: str = "rita") -> int:
    data = {"username": name, "password": password}
    return client.post("/sign-in/", data).status_code


def test_the_keys_of_grants_are_for_everybody_to_keep_a_while(client: Client) -> None:
    response = client.get("/.well-known/jwks.json")
    assert response.status_code == 200
    assert response["Content-Type"] == "application/jwk-set+json"
    assert response["Cache-Control"] == "public, max-age=300"
    assert not response.cookies
    (key,) = response.json()["keys"]
    assert (key["kty"], key["crv"], key["use"]) == ("OKP", "Ed25519", "sig")
    assert "d" not in key
    assert client.post("/.well-known/jwks.json").status_code == 405


def test_without_a_sign_in_a_page_sends_there(client: Client) -> None:
    response = client.get("/queue/")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=/queue/"


def test_five_wrong_passwords_close_the_name_from_this_address(
    client: Client, person: Person
) -> None:
    answers = [sign_in(client, "wrong") for _ in range(5)]
    assert answers[-1] == 429
    assert sign_in(client, PASSWORD) == 429
    response = client.post("/sign-in/", {"username": "rita", "password": PASSWORD})
    assert response["Retry-After"] == "900"
    assert b"Try again in 15 minutes" in response.content


def test_other_names_and_addresses_are_not_closed(
    client: Client, person: Person
) -> None:
    for _ in range(5):
        sign_in(client, "wrong")
    assert sign_in(client, "wrong", name="tom") != 429
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert sign_in(elsewhere, PASSWORD) == 302


def test_a_header_does_not_change_the_address(client: Client, person: Person) -> None:
    for number in range(5):
        client.post(
            "/sign-in/",
            {"username": "rita", "password": "wrong"},
            headers={"X-Forwarded-For": f"192.0.2.{number}"},
        )
    assert sign_in(client, PASSWORD) == 429


def test_a_form_without_its_token_is_refused_as_signed_out(person: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/sign-in/", {"username": "rita", "password": PASSWORD})
    assert response.status_code == 403
    assert b"Sign in and try again" in response.content


def test_cookies_carry_the_host_prefix(client: Client, person: Person) -> None:
    sign_in(client, PASSWORD)
    session = client.cookies["__Host-session"]
    assert session["secure"]
    assert session["httponly"]
    assert session["path"] == "/"
    assert session["domain"] == ""
    assert session["samesite"] == "Lax"


def test_a_form_of_another_session_leads_to_the_sign_in(person: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    source = client.post("/requests/r-1/recall/").content.decode()
    assert "Your session changed" in source
    assert 'href="/sign-in/?next=%2Frequests%2Fr-1%2F"' in source
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    source = client.post("/requests/r-1/recall/").content.decode()
    assert "does not belong to your current session" in source
    assert 'href="/sign-in/' not in source
    assert 'href="/requests/r-1/"' in source


@pytest.mark.django_db
def test_a_page_of_an_error_has_no_words_for_programs(rf: RequestFactory) -> None:
    error = InvalidInput(errors=[build_field_error("days", "from 1 to 365")])
    source = problems.render_refusal(rf.get("/queue/"), error).content.decode()
    assert "Some fields are unknown or invalid. Nothing was stored." in source
    assert "`errors`" not in source
    answer = views.bad_request(rf.get("/queue/"), SuspiciousOperation())
    assert b"Bad Request" not in answer.content
