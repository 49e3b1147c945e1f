"""The second factor in the browser: set up, asked at sign-in, used at a step-up."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from journal.models import LogRecord
from policies import second_factors
from reviews.models import AuthorityChange
from tests import pages
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD, propose
from tests.markup import read_page, read_text
from tests.policies.authenticator import App, enrol

pytestmark = pytest.mark.django_db
PAGE, SIGN_IN, CODE = "/me/second-factor/", "/sign-in/", "/sign-in/code/"


def sign_in(client: Client, name: str = "sue", onward: str = "/log/") -> Any:
    body = {"username": name, "password": PASSWORD, "next": onward}
    return client.post(SIGN_IN, body)


def is_in(client: Client) -> bool:
    return client.get("/log/").status_code == 200


def test_a_person_sets_up_an_app_and_removes_it(gate: Gate, as_: SignIn) -> None:
    rita, app = as_("rita"), App(gate.rita)
    assert "Set up an app" in read_page(rita.get(PAGE))
    assert rita.post(PAGE, {"act": "begin", "password": "wrong"}).status_code == 422
    assert rita.post(PAGE, {"act": "other"}).status_code == 422
    scan = rita.post(PAGE, {"act": "begin", "password": PASSWORD}, follow=True)
    assert "<svg" in read_page(scan)
    assert scan["Cache-Control"] == "no-store"
    app.secret = read_text(scan, "secret")
    assert rita.post(PAGE, {"act": "confirm", "code": app.wrong()}).status_code == 422
    shown = rita.post(PAGE, {"act": "confirm", "code": app.show()})
    codes = re.findall(r"(?:[0-9a-z]{4}-){3}[0-9a-z]{4}", read_page(shown))
    assert len(codes) == 10
    assert codes[0] not in read_page(rita.get(PAGE))
    app.forget()
    renew = {"act": "renew", "one_time_code": app.show()}
    renewed = rita.post(PAGE, renew)
    assert renewed.status_code == 200
    assert codes[0] not in read_page(renewed)
    remove = {"act": "remove", "password": PASSWORD, "code": codes[0]}
    assert rita.post(PAGE, remove).status_code == 422
    app.forget()
    for wrong in ({"password": "wrong"}, {"code": ""}):
        assert (
            rita.post(PAGE, {**remove, "code": app.show(), **wrong}).status_code == 422
        )
    removed = rita.post(PAGE, {**remove, "code": app.show()}, follow=True)
    assert "Your authenticator app is removed." in read_page(removed)
    assert not second_factors.has_second_factor(gate.rita)


def test_a_password_alone_signs_nobody_in_who_has_an_app(gate: Gate) -> None:
    app, codes = enrol(gate.sue)
    client = Client()
    asked = sign_in(client)
    assert asked["Location"] == f"{CODE}?next=%2Flog%2F"
    assert not is_in(client)
    assert client.get(asked["Location"]).status_code == 200
    assert client.post(CODE, {"code": app.wrong()}).status_code == 422
    code = app.show()
    done = client.post(CODE, {"code": code, "next": "https://evil.example/"})
    assert done["Location"] == "/"
    assert is_in(client)
    again = Client()
    sign_in(again)
    assert again.post(CODE, {"code": code}).status_code == 422  # used
    onward = again.post(CODE, {"code": codes[3], "next": "/log/"})
    assert onward["Location"] == "/log/"
    assert is_in(again)


def test_a_code_needs_the_password_before_it_and_soon(gate: Gate) -> None:
    app, _ = enrol(gate.sue)
    client = Client()
    assert client.post(CODE, {"code": app.show()})["Location"] == SIGN_IN
    sign_in(client)
    session = client.session
    who, state, _ = session["signing_in"]
    session["signing_in"] = [who, state, "2026-01-01T00:00:00+00:00"]
    session.save()
    assert client.post(CODE, {"code": app.show()})["Location"] == SIGN_IN
    sign_in(client)
    gate.sue.set_password("another long password")
    gate.sue.save()
    assert client.post(CODE, {"code": app.show()})["Location"] == SIGN_IN


def test_wrong_codes_lock_the_sign_in_out(gate: Gate) -> None:
    app, _ = enrol(gate.sue)
    client = Client()
    sign_in(client)
    sent = [client.post(CODE, {"code": app.wrong()}) for _ in range(5)]
    assert sent[-1].status_code == 429
    assert client.post(CODE, {"code": app.show()}).status_code == 429
    assert sign_in(Client()).status_code == 429
    assert not is_in(client)


@pytest.mark.parametrize("by_api", [False, True])
def test_a_code_confirms_a_verdict_once(gate: Gate, as_: SignIn, by_api: bool) -> None:
    app, codes = enrol(gate.sue)
    asked = propose(gate.agent, amount="899.00").request
    sue = as_("sue")
    body = {
        "verdict": "approve",
        "version": asked.version,
        "action_hash": asked.action_hash,
    }

    def decide(code: str) -> int:
        if by_api:
            path, kind = f"/api/v1/requests/{asked.pk}/decide", "application/json"
            sent = {**body, "one_time_code": code}
            return sue.post(path, sent, content_type=kind).status_code
        seen = {"seen": pages.token(asked, "sue"), "one_time_code": code}
        return sue.post(f"/requests/{asked.pk}/decide/", {**body, **seen}).status_code

    assert decide("") == 401
    assert decide(app.wrong()) == 401
    assert decide(codes[0]) == 401  # for sign-in alone
    assert decide(app.show()) in {200, 303}
    assert asked.decisions.get().authority["step_up"] == "totp"
    assert second_factors.count_recovery_codes(gate.sue) == 10


def test_a_lost_factor_takes_two_administrators(gate: Gate, as_: SignIn) -> None:
    path = f"/people/{gate.rita.public_id}/"
    adam, alma = as_("adam"), as_("alma")
    sent = {"act": "factor", "reason": "Lost the phone.", "password": PASSWORD}
    assert "none" in read_text(adam.get(path), "now")
    assert adam.post(f"{path}access/", sent).status_code == 422
    enrol(gate.rita)
    adam_app, _ = enrol(gate.adam)
    assert "Remove the second factor…" in read_text(adam.get(path), "access")
    by_code = {**sent, "password": "", "one_time_code": adam_app.show()}
    assert adam.post(f"{path}access/", by_code).status_code == 302
    assert second_factors.has_second_factor(gate.rita)
    row = AuthorityChange.objects.get()
    answer = f"/people/changes/{row.pk}/answer/"
    confirm = {"answer": "confirm", "password": PASSWORD}
    assert adam.post(answer, confirm).status_code == 422
    assert second_factors.has_second_factor(gate.rita)
    assert alma.post(answer, confirm).status_code == 302
    assert not second_factors.has_second_factor(gate.rita)
    assert LogRecord.objects.filter(kind="person.factor_removed").count() == 1
    client = Client()
    sign_in(client, "rita")
    assert is_in(client)
