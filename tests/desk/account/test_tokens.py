from __future__ import annotations

import re

import pytest
from django.test import Client

from journal import clock, errors
from reviews.models import PersonalToken
from reviews.people import tokens
from tests.conftest import Gate
from tests.markup import read_page


@pytest.fixture
def rita(gate: Gate) -> Client:
    client = Client()
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    return client


def test_a_token_is_shown_once_and_works(gate: Gate, rita: Client) -> None:
    page = rita.post("/me/tokens/", {"name": "nightly"})
    (text,) = re.findall(r"csp_[a-z0-9]{8}_[a-z0-9]{32}", page.content.decode())
    assert page["Cache-Control"] == "no-store"
    assert tokens.authenticate_token(text) == gate.rita
    assert text not in rita.get("/me/tokens/").content.decode()


def test_a_token_ends_by_itself(gate: Gate, rita: Client) -> None:
    for days in ("", "365"):
        rita.post("/me/tokens/", {"name": "nightly", "days": days})
    usual, longest = PersonalToken.objects.order_by("pk")
    assert usual.expires_at
    assert longest.expires_at
    assert (usual.expires_at - usual.created_at).days == 90
    assert (longest.expires_at - longest.created_at).days == 365
    shown = rita.get("/me/tokens/").content.decode()
    assert f"{usual.expires_at:%Y}" in shown
    for days in ("0", "366", "x"):
        again = rita.post("/me/tokens/", {"name": "more", "days": days})
        assert again.status_code == 422
        assert 'data-testid="days-error"' in read_page(again)


def test_an_ended_token_opens_nothing_and_says_so(gate: Gate, rita: Client) -> None:
    text = tokens.create_token(person=gate.rita, name="old", days=1)
    assert tokens.authenticate_token(text) == gate.rita
    PersonalToken.objects.update(expires_at=clock.now())
    with pytest.raises(errors.InvalidAgentKey):
        tokens.authenticate_token(text)
    assert 'data-testid="expired"' in read_page(rita.get("/me/tokens/"))


@pytest.mark.parametrize("days", [0, -1, 366])
def test_no_token_is_for_longer_than_a_year(gate: Gate, days: int) -> None:
    with pytest.raises(errors.InvalidInput):
        tokens.create_token(person=gate.rita, name="for ever", days=days)


def test_a_token_needs_a_name(rita: Client) -> None:
    page = rita.post("/me/tokens/", {"name": " "})
    assert page.status_code == 422
    assert 'id="token-error"' in read_page(page)
    assert not PersonalToken.objects.exists()


def test_only_ones_own_token_is_ended(gate: Gate, rita: Client) -> None:
    tokens.create_token(person=gate.tom, name="his")
    toms = PersonalToken.objects.get()
    assert rita.post(f"/me/tokens/{toms.pk}/revoke/").status_code == 404
    tokens.create_token(person=gate.rita, name="hers")
    hers = PersonalToken.objects.get(person=gate.rita)
    assert rita.post(f"/me/tokens/{hers.pk}/revoke/").status_code == 302
    assert PersonalToken.objects.filter(revoked_at__isnull=False).get() == hers


def test_ending_by_a_link_does_nothing(gate: Gate, rita: Client) -> None:
    tokens.create_token(person=gate.rita, name="hers")
    hers = PersonalToken.objects.get()
    assert rita.get(f"/me/tokens/{hers.pk}/revoke/").status_code == 405
