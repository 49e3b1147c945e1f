"""Signing in: guessed passwords, borrowed sessions, ways out of the house."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.test import Client
from pytest_django import Settings

from policies.models import Person
from reviews.models import ApprovalRequest
from tests import pages
from tests.conftest import Gate
from tests.factories import PASSWORD, propose
from tests.security.world import BACKEND

ELSEWHERE = "192.0.2.7"


def sign_in(client: Client, password: str = PASSWORD, name: str = "sue") -> Any:
    body = {"username": name, "password": password}
    return client.post("/sign-in/", body)


def signed_in(gate: Gate, name: str = "sue", **more: Any) -> Client:
    client = Client(**more)
    client.force_login(gate.people[name], BACKEND)
    return client


@pytest.fixture
def asked(gate: Gate) -> ApprovalRequest:
    """Two supervisors and a step-up."""
    return propose(gate.agent, amount="899.00").request


def verdict(asked: ApprovalRequest, password: str) -> dict[str, Any]:
    return {
        "verdict": "approve",
        "version": asked.version,
        "action_hash": asked.action_hash,
        "password": password,
    }


def on_the_page(client: Client, asked: ApprovalRequest, password: str) -> int:
    path = f"/requests/{asked.pk}/decide/"
    body = {**verdict(asked, password), "seen": pages.token(asked, "sue")}
    return client.post(path, body).status_code


def over_the_api(client: Client, asked: ApprovalRequest, password: str) -> int:
    path = f"/api/v1/requests/{asked.pk}/decide"
    body = verdict(asked, password)
    return client.post(path, body, content_type="application/json").status_code


def test_after_five_wrong_passwords_the_right_one_is_refused(gate: Gate) -> None:
    client = Client()
    assert [sign_in(client, "wrong").status_code for _ in range(5)][-1] == 429
    refused = sign_in(client)
    assert refused.status_code == 429
    assert b"Try again in 15 minutes" in refused.content
    assert client.get("/queue/").status_code == 302
    assert sign_in(Client(), name="sam").status_code == 302
    assert sign_in(Client(REMOTE_ADDR=ELSEWHERE)).status_code == 302


def test_another_browser_has_no_tries_more(gate: Gate) -> None:
    for number in range(5):
        sign_in(Client(headers={"User-Agent": f"browser {number}"}), "wrong")
    assert sign_in(Client()).status_code == 429


@pytest.mark.parametrize("decide", [on_the_page, over_the_api])
def test_guessing_at_the_step_up_closes_the_sign_in_too(
    gate: Gate, asked: ApprovalRequest, decide: Any
) -> None:
    client = signed_in(gate)
    assert [decide(client, asked, "wrong") for _ in range(4)] == [401] * 4
    assert decide(client, asked, "wrong") == 429
    assert decide(client, asked, PASSWORD) == 429
    assert sign_in(Client()).status_code == 429
    assert not asked.decisions.exists()
    elsewhere = signed_in(gate, REMOTE_ADDR=ELSEWHERE)
    assert decide(elsewhere, asked, PASSWORD) in {200, 303}


def test_guessing_at_the_sign_in_closes_the_step_up(
    gate: Gate, asked: ApprovalRequest
) -> None:
    client = signed_in(gate)
    for _ in range(5):
        sign_in(Client(), "wrong")
    assert on_the_page(client, asked, PASSWORD) == 429
    assert not asked.decisions.exists()


def test_somebody_elses_password_is_no_step_up(
    gate: Gate, asked: ApprovalRequest
) -> None:
    gate.sam.set_password("another right one")
    gate.sam.save()
    assert on_the_page(signed_in(gate), asked, "another right one") == 401


def test_what_was_typed_beside_a_wrong_password_is_not_kept(
    gate: Gate, asked: ApprovalRequest
) -> None:
    body = verdict(asked, "a wrong secret") | {"reason": "a private note"}
    signed_in(gate).post(f"/requests/{asked.pk}/decide/", body)
    kept = str(list(AccessAttempt.objects.values()))
    assert "a private note" not in kept
    assert "a wrong secret" not in kept


def test_a_session_planted_before_the_sign_in_is_not_the_one_after(gate: Gate) -> None:
    client = Client()
    client.get("/sign-in/")
    session = client.session
    session["planted"] = True
    session.save()
    planted = str(session.session_key)
    client.cookies["__Host-session"] = planted
    sign_in(client)
    assert client.cookies["__Host-session"].value != planted
    thief = Client()
    thief.cookies["__Host-session"] = planted
    assert thief.get("/queue/").status_code == 302


def test_the_forms_token_is_another_after_the_sign_in(gate: Gate) -> None:
    client = Client()
    client.get("/sign-in/")
    before = client.cookies["__Host-csrf"].value
    sign_in(client)
    assert client.cookies["__Host-csrf"].value != before


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://testserver@evil.example/",
        "//testserver.evil.example/",
        "/\t/evil.example",
    ],
)
def test_nobody_is_sent_elsewhere_after_the_sign_in(gate: Gate, target: str) -> None:
    body = {"username": "sue", "password": PASSWORD, "next": target}
    assert Client().post("/sign-in/", body)["Location"] == "/"
    in_the_address = Client().post("/sign-in/", {**body, "next": ""}, QUERY_STRING="")
    assert in_the_address["Location"] == "/"
    asked = signed_in(gate).get("/sign-in/", {"next": target})
    assert asked.status_code in {302, 400}
    assert asked.headers.get("Location", "/") == "/"


def test_the_way_back_is_a_page_of_ours(gate: Gate) -> None:
    body = {"username": "sue", "password": PASSWORD, "next": "/log/?q=1"}
    assert Client().post("/sign-in/", body)["Location"] == "/log/?q=1"


def test_who_is_made_inactive_is_out_at_once(
    gate: Gate, asked: ApprovalRequest
) -> None:
    """ASVS 5.0, 7.4.2."""
    client = signed_in(gate)
    assert client.get("/queue/").status_code == 200
    Person.objects.filter(pk=gate.sue.pk).update(is_active=False)
    assert client.get("/queue/").status_code == 302
    assert over_the_api(client, asked, PASSWORD) == 401
    assert sign_in(Client()).status_code == 200  # the form again, and no session
    assert not asked.decisions.exists()


def test_a_new_password_ends_the_other_sessions(gate: Gate) -> None:
    client = signed_in(gate)
    gate.sue.set_password("quite another one")
    gate.sue.save()
    assert client.get("/queue/").status_code == 302


def test_a_role_taken_away_is_gone_with_the_next_click(gate: Gate) -> None:
    client = signed_in(gate, "adam")
    assert client.get("/log/").status_code == 200
    request = propose(gate.agent).request
    assert client.get(f"/requests/{request.pk}/").status_code == 200
    gate.adam.groups.clear()
    assert client.get(f"/requests/{request.pk}/").status_code == 404


def test_a_wrong_name_and_a_wrong_password_look_alike(
    gate: Gate, settings: Settings
) -> None:
    settings.AXES_ENABLED = False
    answers = [sign_in(Client(), "wrong", name) for name in ("sue", "nobody")]
    first, second = (
        answer.content.replace(b"nobody", b"sue").split(b"<form", 1)[1].split(b"<h1")[1]
        for answer in answers
    )
    clock = re.compile(rb"<time .*?</time>")  # the server's, on every page
    assert clock.sub(b"", first) == clock.sub(b"", second)
