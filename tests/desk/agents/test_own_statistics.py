"""The owner's statistics: their own agents, and nobody else's."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from desk.agents import own_refusals, own_statistics
from journal import clock
from policies.choices import Risk
from reviews.models import ApprovalRequest, Proposal
from tests import factories, worlds
from tests.assurance.planting import reload
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_text
from tests.reviews.states import refused

pytestmark = pytest.mark.django_db
PATH = "/own-statistics/"


def pay(gate: Gate, number: int) -> ApprovalRequest:
    thread = factories.new_thread()
    request: ApprovalRequest = propose(
        gate.agent, customer=f"C-{number}", thread=thread
    ).request
    return request


def decided(gate: Gate, number: int, minutes: int, verdict: str = "approve") -> None:
    request = pay(gate, number)
    decide(request, gate.rita, verdict)
    request.refresh_from_db()
    assert request.settled_at is not None
    opened = request.settled_at - timedelta(minutes=minutes)
    worlds.rewrite(ApprovalRequest, request.pk, opened_at=opened)


def test_an_owner_reads_what_came_of_thirty_days(gate: Gate, as_: SignIn) -> None:
    for number in range(9):
        decided(gate, number, minutes=number + 1)
    decided(gate, 10, minutes=60, verdict="reject")
    pay(gate, 11)
    changed = pay(gate, 12)
    args = {**changed.proposal.current.args, "amount": "39.00"}
    sent = {"args": args, "reason_code": "wrong_amount"}
    decide(changed, gate.rita, "modify", **sent)
    Agent.objects.update(risk_ceiling=Risk.LOW)
    blocked = propose(Agent.objects.get(), customer="C-20", thread="t-20")
    assert blocked.blocked_by == "agent.risk_ceiling"
    old = pay(gate, 30).proposal
    past = clock.now() - timedelta(days=31)
    worlds.rewrite(Proposal, old.pk, created_at=past)
    owen = as_("owen")
    page = owen.get(PATH)
    figures = " ".join(read_text(page, "figures").split())
    assert "13 asked" in figures
    assert "2 refused" in figures
    assert "1 changed by reviewers" in figures
    statistics = own_statistics.build_own_statistics(gate.owen, clock.now())
    whole = statistics.whole
    assert whole.granted >= 9
    assert whole.median == timedelta(minutes=5)
    assert whole.p90 is not None
    assert whole.p90 >= timedelta(minutes=9)
    rules = read_text(page, "rules")
    assert "This agent may propose up to low risk." in rules
    assert "1 rejected by people: Not needed" in rules
    assert "Amount" in read_text(page, "fields")
    shown = find_element(read_page(page), "fields")
    assert f'href="/requests/{changed.pk}/"' in shown
    assert read_page(page).count('data-testid="plot"') == 2
    assert "Statistics of your agents" in read_page(owen.get("/agents/"))


def test_what_refused_adds_up_with_words_and_links(gate: Gate, as_: SignIn) -> None:
    requests = [pay(gate, number) for number in range(5)]
    for request in requests:
        decide(
            request, gate.rita, "reject", reason_code="unsafe", reason="A new payee."
        )
    Agent.objects.update(risk_ceiling=Risk.LOW)
    propose(Agent.objects.get(), customer="C-20", thread="t-20")
    Agent.objects.update(risk_ceiling=Risk.HIGH)
    late = refused(gate)
    statistics = own_statistics.build_own_statistics(gate.owen, clock.now())
    counts = [group.count for group in statistics.refusals]
    assert counts == [5, 1]
    blocked = sum(rule.count for rule in statistics.rules)
    assert sum(counts) + blocked == statistics.whole.refused == 7
    page = as_("owen").get(PATH)
    rules = read_text(page, "rules")
    assert "5 rejected by people: Unsafe" in rules
    assert "1 refused before execution: Stopped" in rules
    assert rules.count("A new payee.") == own_refusals.MAX_LINKED
    shown = find_element(read_page(page), "rules")
    for request in (*requests[2:], late.proposal.request):
        assert f'href="/requests/{request.pk}/"' in shown
    agents = read_text(as_("owen").get("/agents/"), "own")
    assert agents.count("Unsafe A new payee.") == 5


def test_nobody_else_s_agents_are_counted(gate: Gate, as_: SignIn) -> None:
    pay(gate, 1)
    for name in ("rita", "sue", "adam", "otto"):
        assert "You own no agent." in read_text(as_(name).get(PATH), "no-agents")


def test_the_statistics_lead_an_owner_to_their_own(gate: Gate, as_: SignIn) -> None:
    assert as_("owen").get("/statistics/")["Location"] == PATH
    assert PATH in read_page(as_("owen").get("/queue/"))
    assert as_("rita").get("/statistics/").status_code == 403
    assert as_("sue").get("/statistics/").status_code == 200
    assert PATH not in read_page(as_("rita").get("/queue/"))


def test_an_empty_period_is_a_page(gate: Gate, as_: SignIn) -> None:
    page = as_("owen").get(PATH)
    assert "0 asked" in " ".join(read_text(page, "figures").split())
    assert 'data-testid="plot"' not in read_page(page)


def test_more_proposals_take_no_more_queries(gate: Gate) -> None:
    counts = []
    for number in range(2):
        decided(gate, number, minutes=2, verdict="reject")
        person = reload(gate.owen)
        with CaptureQueriesContext(connection) as queries:
            own_statistics.build_own_statistics(person, clock.now())
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 8


def test_only_the_newest_are_counted(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_statistics, "MAX_COUNTED", 2)
    for number in range(3):
        pay(gate, number)
    page = as_("owen").get(PATH)
    assert "Only the newest 2 proposals" in read_text(page, "newest")
