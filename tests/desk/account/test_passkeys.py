"""Passkeys in the browser: added, asked at sign-in, used at a step-up."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from policies import passkeys
from policies.models import FederatedIdentity, Passkey
from policies.models import SignIn as Session
from reviews.models import ApprovalRequest
from tests import pages
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD, propose
from tests.markup import read_page, read_text
from tests.policies.security_key import PRESENT, SecurityKey, give_key

pytestmark = pytest.mark.django_db
PAGE, SIGN_IN, CODE = "/me/passkeys/", "/sign-in/", "/sign-in/code/"
BEGIN = {"act": "begin", "name": "Phone", "password": PASSWORD}


@pytest.fixture(autouse=True)
def named(settings: Any) -> None:
    """The gate has an address for which browsers make passkeys."""
    changed = {"base_url": "http://localhost:8000"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


def ask(client: Client, path: str, **sent: Any) -> dict[str, Any]:
    answer = client.post(path, sent)
    assert answer.status_code == 200, answer.content
    (options,) = answer.json().values()
    return dict(options)


def is_in(client: Client) -> bool:
    return client.get("/me/").status_code == 200


def confirm(client: Client, held: SecurityKey, path: str, sent: dict[str, Any]) -> Any:
    """Send a form as the page's script does."""
    options = ask(client, f"{PAGE}form/", **sent, at=path)
    return client.post(path, {**sent, "passkey": held.sign(options)})


def test_a_person_adds_passkeys_and_removes_one(gate: Gate, as_: SignIn) -> None:
    rita, held = as_("rita"), SecurityKey(gate.rita)
    assert "You have no passkey." in read_page(rita.get(PAGE))
    assert rita.post(f"{PAGE}new/").status_code == 403
    for wrong in ({"name": " "}, {"password": "wrong"}, {"password": ""}):
        assert rita.post(PAGE, {**BEGIN, **wrong}).status_code == 422
    assert rita.post(PAGE, {"act": "add", "passkey": "{}"}).status_code == 403
    assert rita.post(PAGE, {"act": "other"}).status_code == 422
    assert rita.post(PAGE, BEGIN).status_code == 302
    assert rita.post(PAGE, {"act": "add", "passkey": "{}"}).status_code == 422
    made = held.make(ask(rita, f"{PAGE}new/"))
    shown = rita.post(PAGE, {"act": "add", "passkey": made})
    assert "They are shown only now." in read_page(shown)
    assert shown["Cache-Control"] == "no-store"
    more = {"act": "begin", "name": "Key", "password": ""}
    assert confirm(rita, held, PAGE, more).status_code == 302
    other = SecurityKey(gate.rita)
    made = other.make(ask(rita, f"{PAGE}new/"))
    assert rita.post(PAGE, {"act": "add", "passkey": made}).status_code == 302
    which = Passkey.objects.get(name="Key").pk
    remove = {"act": "remove", "which": which, "password": PASSWORD, "code": ""}
    assert rita.post(PAGE, remove).status_code == 422
    for field, value in (("password", "wrong"), ("which", "x"), ("which", 10**15)):
        assert confirm(rita, held, PAGE, {**remove, field: value}).status_code == 422
    assert confirm(rita, other, PAGE, remove).status_code == 302
    assert [row.name for row in passkeys.list_passkeys(gate.rita)] == ["Phone"]


def test_a_passkey_follows_the_password_or_stands_alone(gate: Gate) -> None:
    held, codes = give_key(gate.sue)
    client = Client()
    assert client.post(f"{SIGN_IN}passkey/?after").status_code == 403
    body = {"username": "sue", "password": PASSWORD, "next": "/log/"}
    assert CODE in client.post(SIGN_IN, body)["Location"]
    alone = ask(client, f"{SIGN_IN}passkey/")
    assert client.post(CODE, {"passkey": held.sign(alone)}).status_code == 422
    assert client.post(CODE, {"code": ""}).status_code == 422
    after = ask(client, f"{SIGN_IN}passkey/?after")
    assert client.post(SIGN_IN, {"passkey": held.sign(after)}).status_code == 403
    after = ask(client, f"{SIGN_IN}passkey/?after")
    answer = client.post(CODE, {"passkey": held.sign(after, PRESENT), "next": "/log/"})
    assert answer["Location"] == "/log/"
    assert is_in(client)
    by_code = Client()
    by_code.post(SIGN_IN, body)
    assert by_code.post(CODE, {"code": codes[0]}).status_code == 302

    passwordless = Client()
    options = ask(passwordless, f"{SIGN_IN}passkey/")
    assert "allowCredentials" not in options  # it names nobody
    seen = held.sign(options, PRESENT)
    assert passwordless.post(SIGN_IN, {"passkey": seen}).status_code == 403
    for wrong in ("{}", SecurityKey(gate.sue).sign(options)):
        assert passwordless.post(SIGN_IN, {"passkey": wrong}).status_code == 403
    assert not is_in(passwordless)
    right = held.sign(ask(passwordless, f"{SIGN_IN}passkey/"))
    sent = {"passkey": right, "next": "/log/"}
    assert passwordless.post(SIGN_IN, sent)["Location"] == "/log/"
    assert is_in(passwordless)
    assert Client().post(SIGN_IN, sent).status_code == 403  # it is used


def test_who_has_only_a_provider_signs_in_there(gate: Gate) -> None:
    held, _ = give_key(gate.sue)
    FederatedIdentity.objects.create(
        person=gate.sue, issuer="https://id.example", subject="sub-sue"
    )
    gate.sue.set_unusable_password()
    gate.sue.save()
    client = Client()
    right = held.sign(ask(client, f"{SIGN_IN}passkey/"))
    refused = client.post(SIGN_IN, {"passkey": right})
    assert "Sign in at your identity provider." in read_page(refused)
    assert not is_in(client)


def test_wrong_passkeys_lock_the_sign_in_out(gate: Gate) -> None:
    held, _ = give_key(gate.sue)
    client = Client()
    sent = {"passkey": held.sign(ask(client, f"{SIGN_IN}passkey/"))}
    held.origin = "https://evil.example"
    wrong = {"passkey": held.sign(ask(client, f"{SIGN_IN}passkey/"))}
    tries = [client.post(SIGN_IN, wrong).status_code for _ in range(5)]
    assert tries[-1] == 429
    assert client.post(SIGN_IN, sent).status_code == 429
    assert not is_in(client)


def decide_by(
    client: Client, held: SecurityKey, asked: ApprovalRequest, **other: Any
) -> int:
    """Approve the request by an answer that was made for the same, or for `other`."""
    body = {
        "verdict": "approve",
        "version": asked.version,
        "action_hash": asked.action_hash,
    }
    path = f"/requests/{other.pop('pk', asked.pk)}/passkey/"
    answer = held.sign(ask(client, path, **{**body, **other}))
    sent = {**body, "seen": pages.token(asked, "sue"), "passkey": answer}
    return client.post(f"/requests/{asked.pk}/decide/", sent).status_code


def test_a_passkey_confirms_one_verdict(gate: Gate, as_: SignIn) -> None:
    held, _ = give_key(gate.sue)
    asked = propose(gate.agent, amount="899.00").request
    other = propose(gate.agent, amount="898.00", thread="t-2").request
    sue = as_("sue")
    path = f"/requests/{asked.pk}/passkey/"
    assert sue.post(path, {"verdict": "approve"}).status_code == 422
    before = sue.session.session_key
    for wrong in (
        {"pk": other.pk},
        {"version": 2},
        {"action_hash": other.action_hash},
        {"verdict": "modify"},
    ):
        assert decide_by(sue, held, asked, **wrong) == 401
    form = held.sign(ask(sue, f"{PAGE}form/", at=f"/requests/{asked.pk}/decide/"))
    body = {"verdict": "approve", "version": 1, "action_hash": asked.action_hash}
    sent = {**body, "seen": pages.token(asked, "sue"), "passkey": form}
    assert sue.post(f"/requests/{asked.pk}/decide/", sent).status_code in {401, 429}
    assert sue.session.session_key == before


def test_a_step_up_gives_the_session_another_key(gate: Gate, as_: SignIn) -> None:
    held, _ = give_key(gate.sue)
    asked = propose(gate.agent, amount="899.00").request
    sue = as_("sue")
    before = str(sue.session.session_key)
    assert decide_by(sue, held, asked) in {200, 302, 303}
    assert asked.decisions.get().authority["step_up"] == "passkey"
    assert sue.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()
    stolen = Client()
    stolen.cookies[next(iter(sue.cookies))] = before
    assert not is_in(stolen)
    assert is_in(sue)


def test_a_form_is_confirmed_as_it_is_sent(gate: Gate, as_: SignIn) -> None:
    held, _ = give_key(gate.adam)
    adam, path = as_("adam"), f"/people/{gate.rita.public_id}/access/"
    sent = {"act": "reset", "reason": "Forgot it.\nAgain."}
    answer = held.sign(ask(adam, f"{PAGE}form/", **sent, at=path))
    for other in ({"act": "deactivate"}, {"reason": "Another."}):
        changed = {**sent, **other, "passkey": answer}
        assert adam.post(path, changed).status_code == 422
    where = f"/people/{gate.sue.public_id}/access/"
    assert adam.post(where, {**sent, "passkey": answer}).status_code == 422
    windows = {**sent, "reason": sent["reason"].replace("\n", "\r\n")}
    assert adam.post(path, {**windows, "passkey": answer}).status_code == 302


def test_at_a_loopback_number_the_page_leads_to_localhost(
    gate: Gate, as_: SignIn, settings: Any
) -> None:
    changed = {"base_url": "http://127.0.0.1:8123"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    text = read_text(as_("rita").get(PAGE), "not-offered")
    assert "BASE_URL=http://localhost:8123" in text
