"""Who stands behind a proposal may not decide it, however an agent spells them [I9]."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from agents import delegation
from desk.components import visibility
from policies.choices import Tier
from policies.models import Person, Queue
from reviews import permissions
from reviews.models import ApprovalRequest, Proposal
from reviews.people import tokens
from tests import factories
from tests.conftest import Gate
from tests.desk.api.test_people import call
from tests.factories import propose
from tests.markup import read_text

SPELLINGS = {
    "capital": "Rita",
    "capitals": "RITA",
    "space before": " rita",
    "space after": "rita ",
    "capital in the address": "Rita@northgate-electronics.example",
    "capitals in the domain": "rita@NORTHGATE-ELECTRONICS.EXAMPLE",
    "in brackets": "<rita@northgate-electronics.example>",
    "as a link": "mailto:rita@northgate-electronics.example",
    "full name": "Rita Okafor",
    "a Cyrillic letter": "rit\u0430",
    "a letter of a rare alphabet": "\u13a1ita",
    "an invisible letter": "ri\u200bta",
    "full width": "\uff52\uff49\uff54\uff41",
    "with a prefix": "user:rita",
    "with a tag": "rita+x@northgate-electronics.example",
    "with a name before it": "Rita O. <Rita+a@Northgate-Electronics.example>",
    "escaped": "mailto:rita%40northgate-electronics.example?subject=x",
    "a domain with a dot": "rita@northgate-electronics.example.",
    "a link in capitals": "MAILTO:RITA@northgate-electronics.example",
}
SIMILAR = {
    "other domain": "rita@gmail.example",
    "a figure for a letter": "r1ta",
    "turned round": "Okafor, Rita",
    "without a space": "rita.okafor",
    "an initial": "r.okafor",
    "an accent": "Ríta Ökafor",
    "one letter other": "Rita Okafar",
    "two letters changed places": "Rita Okafro",
    "one letter less": "Rita Okafo",
    "in a path": "people/rita/expenses",
    "with others": "tim; rita",
}
HARMLESS = [
    "C-1003",
    "maria@customers.example",
    "Rita Meyer",
    "order-bot",
    "nightly",
    "marguerita@customers.example",
    "",
    " ",
    "@",
    "<>",
    "mailto:",
    "tomas.peterson@customers.example",
]


@pytest.fixture
def rita(gate: Gate) -> Person:
    gate.rita.email = "rita@northgate-electronics.example"
    gate.rita.last_name = "Okafor"
    gate.rita.save()
    return gate.rita


def named(gate: Gate, text: str, kind: str = "user") -> delegation.Delegation:
    return delegation.build_delegation(gate.agent, {"kind": kind, "id": text}, "")


@pytest.mark.parametrize("spelt", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("place", ["id", "chain"])
def test_every_spelling_of_a_person_bars_them(
    gate: Gate, rita: Person, spelt: str, place: str
) -> None:
    behalf: dict[str, Any] = {"kind": "user", "id": "C-1"}
    behalf |= {"id": spelt} if place == "id" else {"chain": ["C-9", spelt]}
    request = propose(gate.agent, on_behalf_of=behalf).request
    request.refresh_from_db()
    assert set(request.proposal.barred) == {rita.public_id, gate.owen.public_id}
    assert permissions.describe_why_cannot_decide(rita, request, request.sealed)
    assert not permissions.describe_why_cannot_decide(gate.tom, request, request.sealed)
    assert "agent.resemblance" not in rules(request.proposal)


@pytest.mark.parametrize("spelt", SIMILAR.values(), ids=SIMILAR)
def test_what_only_looks_like_a_person_bars_them_and_asks_for_approval(
    gate: Gate, rita: Person, spelt: str
) -> None:
    behalf = {"kind": "customer", "id": spelt}
    proposal = propose(gate.agent, "look", on_behalf_of=behalf)
    assert proposal.kept_out == [rita.public_id]
    assert permissions.describe_why_cannot_decide(
        rita, proposal.request, proposal.request.sealed
    )
    assert proposal.request.tier == Tier.APPROVE
    assert "agent.resemblance" in rules(proposal)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_customer_bars_nobody(gate: Gate, rita: Person, text: str) -> None:
    found = named(gate, text, kind="customer")
    assert found == delegation.Delegation([gate.owen.public_id], [])
    proposal = propose(gate.agent, "look", on_behalf_of={"kind": "customer", "id": ""})
    assert not hasattr(proposal, "request")


def test_who_decides_it_cannot_lower_what_a_similar_name_asked_for(
    gate: Gate, rita: Person
) -> None:
    """The agent's revision and the policy asked anew still know of it."""
    behalf = {"kind": "user", "id": "Rita Okafar"}
    proposal = propose(gate.agent, on_behalf_of=behalf)
    factories.revise(gate.agent, proposal, amount="20.00")
    proposal.refresh_from_db()
    assert proposal.revision == 2
    assert "agent.resemblance" in rules(proposal)


def test_who_is_barred_from_a_proposal_is_barred_from_what_it_started(
    gate: Gate, rita: Person
) -> None:
    first = propose(gate.agent, on_behalf_of={"kind": "user", "id": "rita"})
    other = factories.agent(gate.owen, "other")
    child = propose(other, parent=first.pk)
    grandchild = propose(gate.agent, parent=child.pk, thread="t-2")
    for one in (child, grandchild):
        assert rita.public_id in one.kept_out
        assert rita.public_id not in one.barred
        assert not visibility.select_decidable(rita).filter(pk=one.request.pk).exists()
        assert visibility.select_decidable(gate.sue).filter(pk=one.request.pk).exists()
        assert permissions.describe_why_cannot_decide(
            rita, one.request, one.request.sealed
        )
        assert not permissions.describe_why_cannot_decide(
            gate.sue, one.request, one.request.sealed
        )


def test_a_parent_that_is_not_there_bars_nobody(gate: Gate) -> None:
    assert propose(gate.agent, parent="p-nowhere").barred == [gate.owen.public_id]


def rules(proposal: Proposal) -> set[str]:
    version = proposal.request.sealed
    return {rule["id"] for rule in version.rules}


BOTH = {"kind": "user", "id": "rita", "chain": ["tom"]}


def said_of(gate: Gate, request: ApprovalRequest, person: Person) -> dict[str, Any]:
    token = tokens.create_token(person=person, name="script")
    answer = call(f"/requests/{request.pk}", token=token)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def read_page_of(person: Person, request: ApprovalRequest) -> str:
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    return read_text(client.get(f"/requests/{request.pk}/"))


def test_a_claim_that_bars_several_deciders_takes_one_tier_more(
    gate: Gate,
) -> None:
    proposal = propose(gate.agent, on_behalf_of=BOTH)
    request = proposal.request
    assert request.tier == Tier.ESCALATE
    assert "agent.narrows" in [rule["id"] for rule in request.sealed.rules]
    assert proposal.current.facts["narrowed"] == {"barred": 2, "left": 2}
    found = said_of(gate, request, gate.sue)
    assert found["barred_by_claims"] == 2
    said = "The agent's claims bar 2 people of the queue; 2 can decide"
    assert said in found["flags"]
    assert said in read_page_of(gate.sue, request)


def test_a_claim_that_bars_one_of_many_is_only_said(gate: Gate) -> None:
    request = propose(gate.agent, on_behalf_of={"kind": "user", "id": "rita"}).request
    assert request.tier == Tier.APPROVE
    found = said_of(gate, request, gate.sue)
    assert found["barred_by_claims"] == 1
    source = read_page_of(gate.sue, request)
    assert "bar 1 person of the queue; 3 can decide" in source


def test_a_claim_that_leaves_one_decider_takes_one_tier_more(gate: Gate) -> None:
    queue = Queue.objects.get(name="money")
    for person in (gate.sue, gate.sam):
        remove_perm("policies.decide", person, queue)
    request = propose(gate.agent, on_behalf_of={"kind": "user", "id": "rita"}).request
    assert request.tier == Tier.ESCALATE
    assert request.proposal.current.facts["narrowed"] == {"barred": 1, "left": 1}


def test_who_may_not_decide_the_parent_counts_too(gate: Gate) -> None:
    parent = propose(gate.agent, on_behalf_of=BOTH)
    child = propose(gate.agent, thread="t-2", amount="41.00", parent=parent.pk)
    assert child.request.tier == Tier.ESCALATE
    assert child.current.facts["narrowed"] == {"barred": 2, "left": 2}


def test_a_claim_about_strangers_and_one_of_the_owner_change_nothing(
    gate: Gate,
) -> None:
    for text in ("maria@customers.example", "owen"):
        behalf = {"kind": "user", "id": text}
        proposal = propose(gate.agent, amount="41.00", on_behalf_of=behalf)
        assert proposal.request.tier == Tier.APPROVE
        assert "narrowed" not in proposal.current.facts


def test_a_revision_and_an_edit_keep_what_the_claims_did(gate: Gate) -> None:
    proposal = propose(gate.agent, on_behalf_of=BOTH)
    factories.revise(gate.agent, proposal, amount="39.00")
    proposal.refresh_from_db()
    assert proposal.request.tier == Tier.ESCALATE
    args = {"customer": "C-1", "amount": "38.00", "currency": "USD"}
    factories.decide(proposal.request, gate.sue, "modify", args=args)
    proposal.request.refresh_from_db()
    assert proposal.request.tier == Tier.ESCALATE


@pytest.mark.parametrize(
    ("tool", "tier"), [("look", Tier.NOTIFY), ("tag", Tier.APPROVE)]
)
def test_what_asks_nobody_takes_one_tier_more_too(
    gate: Gate, tool: str, tier: Tier
) -> None:
    proposal = propose(gate.agent, tool, on_behalf_of=BOTH)
    assert proposal.current.tier == tier
