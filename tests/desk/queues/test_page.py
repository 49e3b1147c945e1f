"""The page of queues says where the policy asks for more people than there are."""

from __future__ import annotations

from typing import Any

import pytest

from desk.queues.page import StaffedQueue, build_queues_page
from journal.errors import NotPermitted
from policies.models import Passkey, Person
from tests.conftest import Gate
from tests.factories import document_of_tests, policy
from tests.policies.security_key import give_key, offer_passkeys


def find_line(gate: Gate, name: str = "money") -> StaffedQueue:
    page = build_queues_page(gate.adam)
    return next(line for line in page.lines if line.name == name)


def test_each_queue_names_its_people(gate: Gate) -> None:
    line = find_line(gate)
    assert set(line.supervisors) == {gate.sue, gate.sam}
    assert set(line.reviewers) == {gate.rita, gate.tom}


def test_a_step_that_takes_everybody_has_nobody_to_spare(gate: Gate) -> None:
    line = find_line(gate)
    escalation = next(one for one in line.demands if one.tier == "an escalation")
    assert (escalation.needs, escalation.lacks) == ("2 supervisors", "")
    assert (escalation.spare, escalation.verdict) == (False, "Nobody to spare")
    approval = next(one for one in line.demands if one.tier == "an approval")
    assert approval.spare
    assert line.is_short


def test_a_step_without_enough_people_comes_first(gate: Gate) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(is_active=False)
    page = build_queues_page(gate.otto)
    line, demand = page.gaps[0]
    assert demand.lacks == "1 of 2 supervisors"
    assert demand.verdict == "Cannot be met: 1 of 2 supervisors"
    assert demand in line.demands


def test_those_who_lack_what_the_policy_takes_are_a_gap(
    gate: Gate, settings: Any
) -> None:
    offer_passkeys(settings)
    for who in (gate.sue, gate.sam):
        give_key(who)
    document = document_of_tests()
    document["desk"]["step_up"] = {"high": ["passkey"], "critical": ["passkey"]}
    policy(gate.people, document)
    line = find_line(gate)
    demand = next(one for one in line.demands if one.having)
    assert demand.tier == "an escalation"
    assert demand.needs == "at high risk 2 supervisors with a passkey"
    assert (demand.having, demand.verdict) == (
        "2 of 4 have a passkey",
        "Nobody to spare",
    )
    assert list(demand.lacking) == [gate.rita, gate.tom]
    Passkey.objects.filter(person=gate.sam).delete()
    line, demand = build_queues_page(gate.adam).gaps[0]
    assert demand.verdict == "Cannot be met: 1 of 2 supervisors"
    assert list(demand.lacking) == [gate.rita, gate.sam, gate.tom]


@pytest.mark.parametrize("who", ["rita", "sue", "owen"])
def test_it_is_for_those_who_see_every_account(gate: Gate, who: str) -> None:
    with pytest.raises(NotPermitted):
        build_queues_page(getattr(gate, who))
