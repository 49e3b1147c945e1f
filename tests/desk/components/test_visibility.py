"""Who may read what, and who is blind to what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from guardian.shortcuts import remove_perm

from agents import proposals as agent_proposals
from agents.choices import ThreadResult
from desk.components import badges, log_lines, log_sentences, visibility
from desk.queue import page as queue
from desk.queue.page import EMPTY_SENTENCES, QueueFilters
from desk.request import load
from desk.request.page import build_page
from journal import clock, errors
from policies.choices import Risk, Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.holds import take
from reviews.models import ApprovalRequest
from reviews.people import preferences
from reviews.requests import proposals
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

NOTE = "the customer sent me a photograph"


def fresh(person: Person) -> Person:
    """Without what was remembered of roles and queues."""
    return Person.objects.get(pk=person.pk)


def requests_of_every_kind(gate: Gate) -> Iterator[ApprovalRequest]:
    """Pending ones whose next decider differs."""
    yield propose(gate.agent).request
    yield propose(gate.agent, amount="899.00", customer="C-2").request
    approved_once = propose(gate.agent, amount="700.00", customer="C-3").request
    decide(approved_once, gate.sue)
    yield approved_once
    handed_up = propose(gate.agent, customer="C-4").request
    decide(handed_up, gate.rita, "escalate")
    yield handed_up
    late = propose(gate.agent, customer="C-5").request
    factories.overdue(late)
    yield late
    yield propose(gate.agent, "write").request
    done = propose(gate.agent, customer="C-6").request
    decide(done, gate.rita, "reject")
    yield done


def may_decide(person: Person, request: ApprovalRequest) -> bool:
    request.refresh_from_db()
    if request.status != "pending" or request.expires_at <= clock.now():
        return False
    return not permissions.describe_why_cannot_decide(
        fresh(person), request, request.sealed
    )


def test_the_list_holds_exactly_what_the_operation_lets_pass(gate: Gate) -> None:
    requests = list(requests_of_every_kind(gate))
    for name, person in gate.people.items():
        listed = set(
            visibility.select_decidable(fresh(person)).values_list("pk", flat=True)
        )
        allowed = {one.pk for one in requests if may_decide(person, one)}
        assert listed == allowed, name


def test_one_request_is_found_by_the_rule_of_the_list(gate: Gate) -> None:
    requests = [propose(gate.agent).request, propose(gate.agent, "write").request]
    remove_perm("policies.decide", gate.rita, requests[0].queue)
    seen = set()
    for name, person in gate.people.items():
        one = fresh(person)
        listed = set(visibility.select_visible_requests(one))
        found = [visibility.find_visible_request(one, row.pk) for row in requests]
        assert {row for row in found if row} == listed, name
        assert visibility.find_visible_request(one, "r-0") is None
        shown = set(visibility.select_visible_requests(one))
        asked = [row for row in requests if visibility.is_visible_request(one, row)]
        assert set(asked) == shown, name
        seen.add(len(listed))
    assert seen == {1, 2}
    assert visibility.find_visible_request(fresh(gate.rita), requests[0].pk) is None


def test_a_stopped_reviewer_has_nothing_to_decide(gate: Gate) -> None:
    propose(gate.agent)
    stops.create_stop(
        scope=Scope.REVIEWER,
        key=gate.rita.public_id,
        mode=StopMode.STOPPED,
        person=gate.adam,
        reason="left",
    )
    assert not visibility.select_decidable(fresh(gate.rita)).exists()
    assert visibility.select_decidable(fresh(gate.tom)).exists()


def test_who_owns_the_agent_never_decides_but_may_read(gate: Gate) -> None:
    request = propose(gate.agent).request
    gate.owen.groups.add(Group.objects.get(name=Role.REVIEWER))
    owen = fresh(gate.owen)
    assert not visibility.select_decidable(owen).exists()
    assert visibility.select_visible_requests(owen).get() == request


def test_a_stranger_to_the_queue_sees_nothing(gate: Gate) -> None:
    request = propose(gate.agent).request
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    rita = fresh(gate.rita)
    assert not visibility.select_visible_requests(rita).exists()
    assert not visibility.select_visible_proposals(rita).exists()
    with pytest.raises(errors.NotFound):
        load.load_request(rita, request.pk, clock.now())


def test_auditors_see_all_and_decide_nothing(gate: Gate) -> None:
    request = propose(gate.agent).request
    otto = fresh(gate.otto)
    assert visibility.select_visible_requests(otto).get() == request
    assert load.load_request(otto, request.pk, clock.now()).why_not


def test_the_badge_counts_what_i_can_still_decide(gate: Gate) -> None:
    list(requests_of_every_kind(gate))
    rita, sue = (
        badges.count_badges(fresh(gate.rita)),
        badges.count_badges(fresh(gate.sue)),
    )
    assert (rita.queue, rita.escalations) == (2, 0)
    assert (sue.queue, sue.escalations) == (4, 2)


def test_the_badge_says_what_expires_soon(gate: Gate) -> None:
    request = propose(gate.agent).request
    soon = clock.now() + timedelta(minutes=3)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=soon)
    assert badges.count_badges(fresh(gate.rita)).soon == 1


@pytest.mark.parametrize(
    ("number", "said"), [(0, ""), (7, "7"), (99, "99"), (100, "99+")]
)
def test_badges_are_capped(number: int, said: str) -> None:
    assert badges.format_badge(number) == said


def page_source(gate: Gate, name: str, request: ApprovalRequest) -> str:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return client.get(f"/requests/{request.pk}/").content.decode()


def test_the_log_is_blind_too_until_it_is_settled(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason_code="verified", reason=NOTE)
    kinds = set(
        log_lines.select_records(fresh(gate.sam)).values_list("kind", flat=True)
    )
    assert "decision.recorded" not in kinds
    decide(request, gate.sam)
    kinds = set(
        log_lines.select_records(fresh(gate.sam)).values_list("kind", flat=True)
    )
    assert "decision.recorded" in kinds


def test_who_escalated_is_not_named_while_it_is_open(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    records = log_lines.select_request_records(fresh(gate.sue), request)
    said = [
        part.text
        for line in log_lines.build_log_lines(fresh(gate.sue), records)
        for part in line.wording
    ]
    assert log_sentences.HIDDEN_NAME in said
    assert not any("Rita" in text for text in said)


def test_auditors_read_every_vote_at_once(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason_code="verified", reason=NOTE)
    assert NOTE in page_source(gate, "otto", request)


def test_once_settled_everybody_reads_who_said_what(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject", reason_code="unsafe", reason=NOTE)
    source = page_source(gate, "tom", request)
    assert "Rita Example" in source
    assert NOTE in source


def test_an_owner_reads_the_outcome_without_names(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject", reason_code="unsafe")
    lines = log_lines.build_log_lines(
        fresh(gate.owen), log_lines.select_records(fresh(gate.owen))
    )
    said = " ".join(part.text for line in lines for part in line.wording)
    assert "rejected" in said
    assert "Rita" not in said


def test_reviewers_read_their_own_part_of_the_log(gate: Gate) -> None:
    mine, other = propose(gate.agent).request, propose(gate.agent, "write").request
    decide(mine, gate.rita, "reject", reason_code="unsafe")
    found = set(
        log_lines.select_records(fresh(gate.rita)).values_list("request", flat=True)
    )
    assert mine.pk in found
    assert other.pk not in found


def queue_page(person: Person, **filters: str) -> queue.QueuePage:
    person = fresh(person)
    return queue.build_queue_page(person, QueueFilters.read(filters), now=clock.now())


def test_the_queue_has_bands_and_least_time_first(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["tag"] |= {"floor": "approve", "standing_grant": None}
    factories.policy(gate.people, document)
    tag = propose(gate.agent, "tag").request
    late, soon = (propose(gate.agent, customer=c).request for c in ("C-7", "C-8"))
    deploy = propose(gate.agent, "deploy").request
    at = clock.now() + timedelta(minutes=2)
    ApprovalRequest.objects.filter(pk=soon.pk).update(expires_at=at)
    bands = queue_page(gate.sue).bands
    assert [[row.id for row in band] for band in bands] == [
        [deploy.pk],
        [soon.pk, late.pk],
        [tag.pk],
    ]


def test_an_agents_priority_orders_only_within_its_band(gate: Gate) -> None:
    usual = propose(gate.agent, customer="C-7").request
    urgent = propose(gate.agent, customer="C-8", priority="critical").request
    deploy = propose(gate.agent, "deploy", priority="low").request
    rows = [row.id for band in queue_page(gate.sue).bands for row in band]
    assert rows == [deploy.pk, urgent.pk, usual.pk]


def test_tabs_are_by_whose_turn_it_is(gate: Gate) -> None:
    list(requests_of_every_kind(gate))
    counts = {tab.name: tab.count for tab in queue_page(gate.rita).tabs}
    assert counts == {"mine": 0, "open": 2, "waiting": 3, "done": 2}
    for name, count in counts.items():
        rows = [row for band in queue_page(gate.rita, tab=name).bands for row in band]
        assert len(rows) == count, name


def test_filters_narrow_and_foolish_ones_are_ignored(gate: Gate) -> None:
    propose(gate.agent)
    propose(gate.agent, "write")
    rows = [r for band in queue_page(gate.rita, tool="write").bands for r in band]
    assert [row.tool for row in rows] == ["write"]
    found = QueueFilters.read({"tab": "nope", "sort": "x", "show": "-3", "risk": "odd"})
    assert found == QueueFilters()


def test_an_empty_queue_says_what_is_with_others(gate: Gate) -> None:
    propose(gate.agent, amount="899.00")
    page = queue_page(gate.rita)
    assert page.empty == EMPTY_SENTENCES["open"]
    assert page.empty_note == "1 request is waiting on others."


@pytest.mark.parametrize("status", ["pending", "recallable", "authorized", "rejected"])
def test_a_state_has_words_and_a_sign(gate: Gate, status: str) -> None:
    request = getattr(states, status)(gate)
    page = build_page(load.load_request(fresh(gate.rita), request.pk, clock.now()))
    assert page.strip.state.word
    assert page.strip.state.icon or page.strip.state.quarters is not None


def test_many_peoples_badges_are_the_same_numbers(gate: Gate) -> None:
    before = clock.now()
    requests = list(requests_of_every_kind(gate))
    stops.create_stop(
        scope=Scope.REVIEWER,
        key=gate.tom.public_id,
        mode=StopMode.STOPPED,
        person=gate.adam,
        reason="left",
    )
    ids = [person.pk for person in gate.people.values()]
    found = badges.collect_badge_updates(ids, dict.fromkeys(ids, before))
    for name, person in gate.people.items():
        listed = visibility.select_decidable(fresh(person))
        assert found[person.pk].badges == badges.count_badges(fresh(person)), name
        assert found[person.pk].badges.queue == listed.count(), name
        opened = [one.opened_at for one in requests if listed.filter(pk=one.pk)]
        assert found[person.pk].opened == sorted(opened), name


def test_the_navigation_counts_what_the_open_tab_counts(gate: Gate) -> None:
    list(requests_of_every_kind(gate))
    held = propose(gate.agent, customer="C-9").request
    take.take_hold(request_id=held.pk, person=gate.tom)
    for name in ("rita", "tom", "sue", "sam"):
        person = fresh(gate.people[name])
        counts = {tab.name: tab.count for tab in queue_page(person).tabs}
        assert badges.count_badges(person).queue == counts["open"] > 0, name


def test_arrivals_of_a_muted_risk_are_not_announced(gate: Gate) -> None:
    before = clock.now()
    preferences.save_preferences(
        person=gate.rita,
        notifications=preferences.NotificationPreferences(desk={Risk.HIGH: "never"}),
    )
    propose(gate.agent)
    found = badges.collect_badge_updates([gate.rita.pk], {gate.rita.pk: before})[
        gate.rita.pk
    ]
    assert (found.badges.queue, found.opened) == (1, [])


def test_everybodys_numbers_are_a_few_queries(
    gate: Gate, django_assert_num_queries
) -> None:
    list(requests_of_every_kind(gate))
    ids = [person.pk for person in gate.people.values()]
    with django_assert_num_queries(3):
        badges.collect_badge_updates(ids, {})


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("agent", "The agent withdrew it."),
        ("run", "It was withdrawn because its run ended."),
        ("stop", "It was withdrawn by a stop."),
    ],
)
def test_the_page_says_who_withdrew_it(gate: Gate, by: str, said: str) -> None:
    request = states.pending(gate)
    proposal = request.proposal
    if by == "agent":
        states.withdraw(gate.agent, proposal)
    elif by == "run":
        agent_proposals.finish_thread(
            agent=gate.agent, name=proposal.thread, result=ThreadResult.COMPLETED
        )
    else:
        proposals.withdraw_stopped_proposal(proposal_id=proposal.pk, code="stopped")
    source = page_source(gate, "rita", request)
    assert f"{said} There is nothing to decide. Nothing was executed." in source
