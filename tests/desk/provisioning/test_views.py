"""Provisioning in the browser: two administrators give the provider its token."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from journal import clock
from policies.models import (
    Person,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisionedPerson,
    ProvisioningToken,
)
from reviews.administration import accounts, provisioning_tokens
from tests import worlds
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
PAGE = "/people/provisioning/"
MADE = {"reason": "Our <b> directory", "password": PASSWORD}


def status_with(text: str) -> int:
    client = Client(headers={"authorization": f"Bearer {text}"})
    return client.get("/scim/v2/Users").status_code


def test_a_token_goes_from_one_to_two_to_the_provider(gate: Gate, as_: SignIn) -> None:
    adam, alma = as_("adam"), as_("alma")
    for name, status in (("rita", 403), ("sue", 403), ("owen", 403), ("otto", 200)):
        assert as_(name).get(PAGE).status_code == status
        assert as_(name).post(PAGE, MADE).status_code == 403
    assert "make" not in re.findall(r'testid="(\w+)"', read_page(as_("otto").get(PAGE)))
    wrong = adam.post(PAGE, {**MADE, "password": "wrong"})
    assert wrong.status_code == 422
    assert "Our &lt;b&gt; directory" in read_page(wrong)
    assert adam.post(PAGE, {"password": PASSWORD}).status_code == 422
    assert not ProvisioningToken.objects.exists()
    shown = re.search(r"csi_\w{8}_\w{32}", read_text(adam.post(PAGE, MADE), "token"))
    assert shown is not None
    row = ProvisioningToken.objects.get()
    assert shown[0] not in read_page(adam.get(PAGE))  # once
    assert "Another administrator" in read_text(adam.get(PAGE), "why-not")
    assert status_with(shown[0]) == 401
    answer, sent = f"{PAGE}{row.pk}/confirm/", {"password": PASSWORD}
    assert as_("otto").post(answer, sent).status_code == 403
    own = adam.post(answer, sent)
    assert own.status_code == 422
    assert alma.post(answer, {"password": "wrong"}).status_code == 422
    assert status_with(shown[0]) == 401
    assert alma.post(answer, sent).status_code == 302
    assert status_with(shown[0]) == 200
    assert "In force" in read_text(alma.get(PAGE), "tokens")
    assert alma.post(answer, sent).status_code == 422
    assert as_("rita").post(f"{PAGE}{row.pk}/revoke/").status_code == 403
    assert adam.post(f"{PAGE}{row.pk}/revoke/").status_code == 302
    assert status_with(shown[0]) == 401
    assert "Revoked" in read_text(alma.get(PAGE), "tokens")


def test_a_token_that_waited_too_long_is_over(gate: Gate, as_: SignIn) -> None:
    provisioning_tokens.make_token(reason="Later.", by=gate.adam)
    row = ProvisioningToken.objects.get()
    worlds.rewrite(ProvisioningToken, row.pk, asked_at=clock.now() - timedelta(days=8))
    answer = f"{PAGE}{row.pk}/confirm/"
    assert as_("alma").post(answer, {"password": PASSWORD}).status_code == 422
    assert "within a week" in read_text(as_("alma").get(PAGE), "tokens")


def test_the_page_says_what_a_group_gives(gate: Gate, as_: SignIn) -> None:
    group = ProvisionedGroup.objects.create(name="<i>staff")
    ProvisionedPerson.objects.create(person=gate.rita)
    ProvisionedMember.objects.create(group=group, person=gate.rita)
    Person.objects.filter(pk=gate.rita.pk).update(password="!")
    person = as_("alma").get(f"/people/{gate.rita.public_id}/")
    assert "&lt;i&gt;staff" in read_page(person)
    assert "Provisioned" in read_text(as_("alma").get("/people/"), "people")
    text = read_page(as_("alma").get(PAGE))
    assert "&lt;i&gt;staff" in text
    assert "OIDC_GROUPS does not have this name" in text


def test_a_token_ends_with_the_office_of_its_maker(gate: Gate, as_: SignIn) -> None:
    provisioning_tokens.make_token(reason="Ours.", by=gate.adam)
    accounts.deactivate_account(person=gate.adam, by=gate.alma)
    row, alma = ProvisioningToken.objects.get(), as_("alma")
    assert "no administrator any more" in read_text(alma.get(PAGE), "why-not")
    refused = alma.post(f"{PAGE}{row.pk}/confirm/", {"password": PASSWORD})
    assert refused.status_code == 422
    assert ProvisioningToken.objects.get().confirmed_at is None
    assert alma.post(f"{PAGE}{row.pk}/revoke/").status_code == 302
