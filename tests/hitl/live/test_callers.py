"""Whose a key or a session is, as an answer said it: of real answers of Django, too."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from agents import keys
from hitl.live import callers
from hitl.live.buffering import Scope
from hitl.live.callers import NOBODY, KnownCallers, format_client_address
from reviews.people import tokens
from tests.conftest import Gate
from tests.security.world import BACKEND


def scope(path: str = "/api/v1/proposals", **headers: str) -> Scope:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"path": path, "headers": pairs, "client": ("10.0.0.1", 1)}


def test_a_caller_is_known_by_the_credential_of_the_answer(settings: Settings) -> None:
    known, name = KnownCallers(), settings.SESSION_COOKIE_NAME
    known.learn(scope(authorization="Bearer a"), "agent:riley")
    known.learn(scope("/queue/", cookie=f"a=b; {name}=s1"), "person:u-1")
    assert known.of(scope("/api/v1/runs", authorization="Bearer a")) == "agent:riley"
    access = scope("/access/v1/evaluation", authorization="Bearer a")
    assert known.of(access) == "agent:riley"
    assert known.of(scope("/alarms/", cookie=f"{name}=s1")) == "person:u-1"
    assert known.of(scope(cookie=f"{name}=s1")) == "person:u-1"
    for stranger in (
        scope(authorization="Bearer b"),
        scope("/queue/", authorization="Bearer a"),
        scope("/queue/", cookie=f"{name}=s2"),
        scope("/queue/", cookie=f"{name}="),
        scope(),
    ):
        assert known.of(stranger) == ""
        assert known.key_of(stranger) == "address:10.0.0.1"


def test_nobody_forgets_and_without_a_credential_nothing_is_learnt() -> None:
    known, given = KnownCallers(), scope(authorization="Bearer a")
    known.learn(given, "agent:riley")
    known.learn(given, NOBODY)
    assert known.of(given) == ""
    known.learn(scope(), "person:u-1")
    assert known.of(scope()) == ""


def test_what_is_known_is_bounded_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "MOST_KNOWN", 3)
    known = KnownCallers()
    for number in range(5):
        known.learn(scope(authorization=f"Bearer {number}"), "agent:riley")
    found = [known.of(scope(authorization=f"Bearer {n}")) for n in range(5)]
    assert found == ["", "", *["agent:riley"] * 3]
    monkeypatch.setattr(callers, "REMEMBERED_S", 0.0)
    known.learn(scope(authorization="Bearer 4"), "agent:riley")
    assert known.of(scope(authorization="Bearer 4")) == ""


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("10.0.0.1", 1), "address:10.0.0.1"),
        (("2001:db8:1:2:3::4", 1), "address:2001:db8:1:2::/64"),
        (("unix", None), "address:unix"),
        (None, "address:"),
    ],
)
def test_an_address_of_ipv6_is_a_network(client: object, address: str) -> None:
    assert format_client_address({"client": client}) == address


def test_django_says_who_was_let_in(gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    token = tokens.create_token(person=gate.sue, name="script")
    browser = Client()
    browser.force_login(gate.rita, BACKEND)

    def said(client: Client, path: str, bearer: str = "") -> str:
        headers = {"Authorization": f"bEaReR {bearer}"} if bearer else {}
        return str(client.get(path, headers=headers).get("Counterseal-Caller", ""))

    assert said(Client(), "/api/v1/proposals", key) == "agent:riley"
    assert said(Client(), "/api/v1/requests", token) == f"person:{gate.sue.public_id}"
    assert said(browser, "/queue/") == f"person:{gate.rita.public_id}"
    assert said(browser, "/api/v1/requests") == f"person:{gate.rita.public_id}"
    assert said(Client(), "/api/v1/proposals", f"{key}x") == NOBODY
    assert said(Client(), "/queue/") == NOBODY


def test_a_sign_in_says_whose_it_is(gate: Gate) -> None:
    gate.rita.set_password("correct horse battery")
    gate.rita.save()
    form = {"username": "rita", "password": "wrong"}
    answer = Client().post("/sign-in/", form)
    assert answer["Counterseal-Caller"] == NOBODY
    form["password"] = "correct horse battery"
    answer = Client().post("/sign-in/", form)
    assert answer["Counterseal-Caller"] == f"person:{gate.rita.public_id}"
