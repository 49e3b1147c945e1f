"""A policy that takes certain methods needs people who have them."""

from __future__ import annotations

from typing import Any

import pytest

from policies import active, method_covers, versions
from policies.choices import StepUpMethod
from policies.documents import InvalidPolicy, parse_document
from policies.method_covers import MethodCover
from policies.models import FederatedIdentity, Passkey, Person
from tests.conftest import Gate
from tests.factories import document_of_tests
from tests.policies.authenticator import enrol
from tests.policies.security_key import give_key, offer_passkeys

pytestmark = pytest.mark.django_db
DECIDERS = ("rita", "tom", "sue", "sam")


def write(**methods: list[str]) -> dict[str, Any]:
    document = document_of_tests()
    document["desk"]["step_up"] = methods
    return document


def list_covers(queue: str = "money", **methods: list[str]) -> list[MethodCover]:
    covers = method_covers.list_covers(parse_document(write(**methods)))
    return [cover for cover in covers if cover.queue == queue]


def activate(gate: Gate, **methods: list[str]) -> None:
    draft = versions.save_draft(text_or_mapping=write(**methods), author=gate.adam)
    versions.activate_version(version_id=draft.pk, by=gate.alma)


def test_a_policy_that_takes_every_method_asks_for_none(gate: Gate) -> None:
    assert list_covers() == []
    assert list_covers(high=["password", "totp", "passkey", "provider"]) == []


def test_those_who_could_decide_are_counted_and_the_others_named(
    gate: Gate, settings: Any
) -> None:
    offer_passkeys(settings)
    give_key(gate.sue)
    (cover,) = list_covers(high=["passkey"])
    assert cover.level == "high risk"
    assert cover.count == "1 of 4 has a passkey"
    assert cover.lacking == {gate.rita.pk, gate.tom.pk, gate.sam.pk}
    assert str(cover.shortage) == "1 of 2 supervisors"
    assert "pay" in cover.tools
    give_key(gate.sam)
    (cover,) = list_covers(high=["passkey"])
    assert cover.shortage is None
    assert not cover.having.can_spare_one(cover.steps)


def test_each_method_counts_for_those_who_can_use_it(gate: Gate, settings: Any) -> None:
    enrol(gate.sue)
    give_key(gate.sam)
    holders = method_covers.load_holders()
    assert {gate.sue.pk, gate.adam.pk} <= holders[StepUpMethod.PASSWORD]
    assert holders[StepUpMethod.TOTP] == {gate.sue.pk}
    assert holders[StepUpMethod.PASSKEY] == set()  # browsers make none for this address
    offer_passkeys(settings)
    Person.objects.filter(pk=gate.tom.pk).update(password="!none")
    for who in (gate.tom, gate.rita):
        FederatedIdentity.objects.create(
            person=who, issuer="https://id", subject=who.username
        )
    holders = method_covers.load_holders()
    assert holders[StepUpMethod.PASSKEY] == {gate.sam.pk}
    assert gate.tom.pk not in holders[StepUpMethod.PASSWORD]
    assert holders[StepUpMethod.PROVIDER] == set()
    changed = {"oidc_issuer": "https://id"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    assert method_covers.load_holders()[StepUpMethod.PROVIDER] == {gate.tom.pk}


def test_a_policy_that_too_few_can_confirm_is_not_activated(
    gate: Gate, settings: Any
) -> None:
    offer_passkeys(settings)
    give_key(gate.sue)
    before = active.find_active_policy()
    with pytest.raises(InvalidPolicy) as refused:
        activate(gate, high=["passkey"], critical=["passkey"])
    messages = [error["message"] for error in refused.value.errors]
    assert any(
        "1 of 2 supervisors who can decide here have a passkey" in text
        for text in messages
    )
    assert active.find_active_policy() == before
    give_key(gate.sam)
    activate(gate, high=["passkey"])
    Passkey.objects.all().delete()
    with pytest.raises(InvalidPolicy):
        activate(gate, high=["passkey", "totp"])
    activate(gate, high=["passkey", "password"])


def test_below_the_highest_tier_only_a_rule_or_critical_risk_asks(gate: Gate) -> None:
    assert {cover.tier for cover in list_covers(high=["totp"])} == {"escalate"}
    document = write(high=["totp"])
    rule = {"id": "pay.proof", "text": "Proof.", "tools": ["pay"], "when": "true"}
    document["rules"].append({**rule, "then": {"step_up": True}})
    covers = method_covers.list_covers(parse_document(document))
    tiers = {cover.tier for cover in covers if cover.queue == "money"}
    assert tiers == {"approve", "escalate"}
