"""A fresh sign-in at the provider confirms a form, as the password does: for exactly
what it says, once."""

from __future__ import annotations

import re
import time
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, RequestFactory

from agents.models import AgentKey
from desk.components import fresh_sign_in
from journal.errors import NotPermitted
from policies import second_factors, versions
from policies.models import Passkey, Person, PolicyVersion
from tests.conftest import Gate
from tests.desk.openid import OLD, Directory, sign_in
from tests.factories import PASSWORD, document_of_tests
from tests.markup import read_page
from tests.policies.authenticator import enrol
from tests.policies.security_key import give_key

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings(OLD)]
CONFIRM = "/me/confirm/"
LINK = re.compile(r'data-testid="sign-in-again"\s+href="([^"]+)"')
FIELD = re.compile(r'<textarea name="([^"]+)" hidden>\n(.*?)</textarea>', re.DOTALL)
REASON = "They left.\n<b>Now</b> & at once."


@pytest.fixture
def adam(gate: Gate, directory: Directory) -> Client:
    """An administrator who has no password, and an account at the provider."""
    Person.objects.filter(pk=gate.adam.pk).update(password="!none")
    gate.adam.refresh_from_db()
    for who in (gate.adam, gate.sue):
        vouch(directory, who)
    return sign_in(directory, "sub-adam")[0]


def vouch(directory: Directory, person: Person, **claims: Any) -> None:
    mail = {"email": person.email, "email_verified": True}
    directory.put(f"sub-{person.username}", **mail, **claims)


def come_back(directory: Directory, client: Client, who: str = "sub-adam") -> Any:
    """Follow the page's link to the provider and sign in there as this account."""
    link = LINK.search(client.get(CONFIRM).content.decode())
    assert link
    onward = client.get(unescape(link[1]))["Location"]
    assert parse_qs(urlsplit(onward).query)["prompt"] == ["login"]
    return client.get(directory.consent(onward, who))


def read_form(client: Client) -> tuple[str, dict[str, list[str]]]:
    """The form that the page sends: its address and its hidden fields."""
    page = client.get(CONFIRM).content.decode()
    action = re.search(r'action="([^"]+)" data-testid="send"', page)
    assert action
    sent: dict[str, list[str]] = {}
    for name, value in FIELD.findall(page):
        sent.setdefault(name, []).append(unescape(value))
    return action[1], sent


def test_a_form_waits_for_the_sign_in_and_is_sent_as_it_was_written(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    path = f"/people/{gate.tom.public_id}/access/"
    typed = {"act": "deactivate", "reason": REASON, "fresh": "1"}
    page = f"http://testserver/people/{gate.tom.public_id}/"
    shown = adam.get(page)
    assert "Next you sign in again with Example ID" in read_page(shown)
    assert "Your password" not in read_page(shown)
    answer = adam.post(path, typed, headers={"Referer": page})
    assert answer["Location"] == CONFIRM
    waiting = adam.get(CONFIRM)
    assert b"&lt;b&gt;Now&lt;/b&gt;" in waiting.content
    assert page.encode() in waiting.content
    assert 'data-testid="send"' not in waiting.content.decode()
    assert come_back(directory, adam)["Location"] == CONFIRM
    action, sent = read_form(adam)
    assert action == path
    assert {name: value for name, (value,) in sent.items()} == typed
    assert Person.objects.get(pk=gate.tom.pk).is_active
    assert adam.post(action, sent).status_code == 302
    assert not Person.objects.get(pk=gate.tom.pk).is_active
    assert adam.get(CONFIRM)["Location"] == "/me/"


def test_the_proof_is_for_these_words_once(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    path = f"/agents/{gate.agent.slug}/keys/"
    adam.post(path, {"days": "7", "fresh": "1"})
    come_back(directory, adam)
    before = AgentKey.objects.count()
    for other in ({"days": "8"}, {"days": "7", "more": "x"}):
        assert adam.post(path, {**other, "fresh": "1"})["Location"] == CONFIRM
    adam.post(path, {"days": "7", "fresh": "1"})  # still confirmed
    assert AgentKey.objects.count() == before + 1
    again = adam.post(path, {"days": "7", "fresh": "1"})
    assert again["Location"] == CONFIRM
    assert AgentKey.objects.count() == before + 1


def test_two_requests_at_once_spend_it_once(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    path, sent = f"/agents/{gate.agent.slug}/keys/", {"days": "7", "fresh": "1"}
    adam.post(path, sent)
    come_back(directory, adam)
    requests = []
    for _ in range(2):
        request = RequestFactory().post(path, sent)
        request.user = gate.adam
        request.session = SessionStore(adam.session.session_key)
        assert request.session["step_up"]  # read, before one of them spends it
        requests.append(request)
    fresh_sign_in.confirm_form(requests[0])
    with pytest.raises(NotPermitted, match="sent already"):
        fresh_sign_in.confirm_form(requests[1])


def test_another_person_and_an_old_sign_in_confirm_nothing(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    path = f"/people/{gate.tom.public_id}/access/"
    adam.post(path, {"act": "deactivate", "reason": REASON, "fresh": "1"})
    refused = come_back(directory, adam, "sub-sue")
    assert refused.status_code == 403
    assert "Nothing was done." in read_page(refused)
    assert "They left." in read_page(refused)
    vouch(directory, gate.adam, auth_time=int(time.time()) - 3600)
    refused = come_back(directory, adam)
    assert refused.status_code == 403
    assert LINK.search(refused.content.decode())
    assert 'data-testid="send"' not in adam.get(CONFIRM).content.decode()


def test_it_is_only_for_those_whom_the_provider_alone_signs_in(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    gate.adam.set_password(PASSWORD)
    gate.adam.save()
    adam.force_login(gate.adam, "django.contrib.auth.backends.ModelBackend")
    path = f"/agents/{gate.agent.slug}/keys/"
    answer = adam.post(path, {"days": "7", "fresh": "1"})
    assert answer.status_code == 422
    assert "No identity provider confirms" in read_page(answer)
    assert adam.get(CONFIRM)["Location"] == "/me/"


def test_a_policy_is_activated_by_it(
    gate: Gate, adam: Client, directory: Directory
) -> None:
    draft = versions.save_draft(
        text_or_mapping={**document_of_tests(), "zone": "Europe/Berlin"},
        author=gate.alma,
    )
    shown = versions.build_shown_versions(draft)
    path = f"/policies/{draft.number}/activate/"
    sent = {
        "digest": shown.digest,
        "base": shown.base,
        "base_digest": shown.base_digest,
        "reason": REASON,
        "fresh": "1",
    }
    assert adam.post(path, sent)["Location"] == CONFIRM
    come_back(directory, adam)
    action, form = read_form(adam)
    assert adam.post(action, form).status_code == 302
    draft.refresh_from_db()
    assert draft.status == PolicyVersion.Status.ACTIVE


def test_a_person_sets_a_factor_up_and_removes_it(
    gate: Gate, adam: Client, directory: Directory, settings: Any
) -> None:
    page, begin = "/me/second-factor/", {"act": "begin", "fresh": "1"}
    assert adam.post(page, {"act": "begin"}).status_code == 422
    assert adam.post(page, begin)["Location"] == CONFIRM
    come_back(directory, adam)
    action, form = read_form(adam)
    assert adam.post(action, form)["Location"] == page
    assert second_factors.find_pending_secret(gate.adam)
    codes = enrol(gate.adam)[1]
    removal = {"act": "remove", "fresh": "1"}
    assert adam.post(page, removal)["Location"] == CONFIRM
    come_back(directory, adam)
    action, form = read_form(adam)
    assert "or for recovery" in read_page(adam.get(CONFIRM))
    assert adam.post(action, {**form, "code": codes[0]})["Location"] == page
    assert second_factors.find_device(gate.adam) is None


def test_a_passkey_is_named_before_the_sign_in_that_it_takes(
    gate: Gate, adam: Client, directory: Directory, settings: Any
) -> None:
    changed = {"base_url": "http://localhost:8000"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    page = "/me/passkeys/"
    assert adam.post(f"{page}new/").status_code == 403
    sent = {"act": "begin", "name": "Phone", "fresh": "1"}
    assert adam.post(page, sent)["Location"] == CONFIRM
    come_back(directory, adam)
    action, form = read_form(adam)
    assert adam.post(action, form)["Location"] == page
    assert adam.post(f"{page}new/").status_code == 200
    # The next one takes another sign-in.
    assert adam.post(page, {**sent, "name": "Key"})["Location"] == CONFIRM
    _, codes = give_key(gate.adam)
    key = Passkey.objects.get(person=gate.adam)
    removal = {"act": "remove", "which": key.pk, "fresh": "1"}
    assert adam.post(page, removal)["Location"] == CONFIRM
    come_back(directory, adam)
    action, form = read_form(adam)
    assert adam.post(action, {**form, "code": codes[0]})["Location"] == page
    assert not Passkey.objects.exists()
