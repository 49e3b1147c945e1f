"""The figures of the agents' list, and what an owner reads about their own agents."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.models import AgentKey
from desk.agents import figures, own, visibility
from desk.agents.figures import AgentFigures
from journal import clock
from reviews.choices import StopMode, Verdict
from reviews.models import ApprovalRequest, Proposal
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page
from tests.reviews import states

LIST = "/agents/"


def day_of(gate: Gate, agent: str = "riley", name: str = "sue") -> AgentFigures:
    lines = visibility.list_agents(fresh(gate.people[name]), clock.now())
    return next(line.day for line in lines if line.row.agent.slug == agent)


def test_a_day_is_counted_by_how_it_ended(gate: Gate) -> None:
    states.failed(gate)
    states.unknown(gate)
    states.rejected(gate)
    propose(gate.agent, "nothing_like_it", args={})
    propose(gate.agent, thread="waits")
    day = day_of(gate)
    assert (day.proposed, day.executed, day.refused) == (5, 0, 2)
    assert (day.failed, day.unknown, day.expired) == (2, 1, 0)
    assert day.problems == ["1 with unknown result", "1 failed"]
    assert day.median is not None


def test_the_median_is_of_what_was_decided(gate: Gate) -> None:
    for minutes in (2, 10, 30):
        request = propose(gate.agent, customer=f"C-{minutes}").request
        decide(request, gate.rita, Verdict.REJECT)
        opened = ApprovalRequest.objects.get(pk=request.pk).settled_at
        assert opened is not None
        worlds.rewrite(
            ApprovalRequest, request.pk, opened_at=opened - timedelta(minutes=minutes)
        )
    assert day_of(gate).median == timedelta(minutes=10)


def test_yesterday_is_over(gate: Gate) -> None:
    proposal = propose(gate.agent)
    before = clock.now() - timedelta(hours=25)
    worlds.rewrite(Proposal, proposal.pk, created_at=before)
    day = day_of(gate)
    assert (day.proposed, day.seen_at) == (0, None)


def test_the_list_says_that_only_the_newest_are_counted(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    assert "Counted are" not in read_page(as_("sue").get(LIST))
    monkeypatch.setattr(figures, "MAX_COUNTED", 2)
    assert "Counted are the newest 2 proposals." in read_page(as_("sue").get(LIST))
    assert day_of(gate).proposed == 2


def test_an_agent_was_seen_when_its_key_was_last_used(gate: Gate) -> None:
    used = clock.now() - timedelta(days=3)
    AgentKey.objects.create(
        agent=gate.agent, prefix="seen", digest="d", last_used_at=used
    )
    assert day_of(gate).seen_at == used
    proposal = propose(gate.agent)
    assert day_of(gate).seen_at == proposal.created_at


def test_agents_with_problems_come_first_with_the_problem_in_words(
    gate: Gate, as_: SignIn
) -> None:
    factories.agent(gate.owen, "anna", tools=["pay"])
    for number in range(5):
        request = propose(gate.agent, customer=f"C-{number}").request
        decide(request, gate.rita, Verdict.REJECT)
    source = read_page(as_("sue").get(LIST))
    assert source.index('data-agent="riley"') < source.index('data-agent="anna"')
    assert "5 of 5 refused" in find_element(source, "problems")
    worst = AgentFigures({}, None, 1, None, None)
    halted = AgentFigures({}, None, 0, StopMode.STOPPED, None)
    assert worst.severity < halted.severity < day_of(gate, "anna").severity


def test_the_lists_queries_do_not_grow(
    gate: Gate, as_: SignIn, django_assert_max_num_queries
) -> None:
    for name in ("sue", "owen", "rita"):
        client, counts = as_(name), set()
        for number in range(3):
            slug = f"{name}-{number}"
            agent = factories.agent(gate.owen, slug, tools=["pay"])
            propose(agent, customer=slug, thread=slug)
            other = propose(agent, customer=f"x-{slug}", thread=f"x-{slug}")
            decide(other.request, gate.rita, Verdict.REJECT)
            client.get(LIST)
            with django_assert_max_num_queries(30) as queries:
                client.get(LIST)
            counts.add(len(queries))
        assert len(counts) == 1, name


def test_an_owner_begins_with_their_own_agents(gate: Gate, as_: SignIn) -> None:
    assert as_("owen").get("/")["Location"] == LIST
    source = read_page(as_("owen").get(LIST))
    assert "Everything went as asked." in find_element(source, "own")
    for name in ("sue", "rita", "otto"):
        assert 'data-testid="own"' not in read_page(as_(name).get(LIST)), name


def test_an_owner_reads_the_rule_that_refused(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent, "nothing_like_it", args={})
    rejected = propose(gate.agent).request
    decide(rejected, gate.rita, Verdict.REJECT, reason_code="not_needed")
    section = find_element(read_page(as_("owen").get(LIST)), "own")
    assert "This tool is not registered." in section
    assert "Not needed" in section
    assert f"/requests/{rejected.pk}/" in section
    week = own.build_own_agents(gate.owen, clock.now())
    assert week is not None
    assert (week.proposed, week.refused, week.edited) == (2, 2, 0)


def test_an_owner_reads_what_a_reviewer_changed(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="40.00").request
    args = {**request.proposal.current.args, "amount": "15.00"}
    decide(request, gate.rita, Verdict.MODIFY, args=args, reason="Half of it.")
    week = own.build_own_agents(gate.owen, clock.now())
    assert week is not None
    assert week.edited == 1
    (row,) = week.rows
    (change,) = row.changes
    assert ("40" in str(change.before), "15" in str(change.after)) == (True, True)
    assert change.label in find_element(read_page(as_("owen").get(LIST)), "changes")


def test_an_owner_reads_nothing_of_the_agents_of_others(gate: Gate) -> None:
    theirs = factories.agent(gate.otto, "theirs", tools=["pay"])
    propose(theirs)
    week = own.build_own_agents(gate.owen, clock.now())
    assert week is not None
    assert (week.proposed, list(week.rows)) == (0, [])
    lines = visibility.list_agents(fresh(gate.owen), clock.now())
    assert [line.row.agent.slug for line in lines] == ["riley"]
