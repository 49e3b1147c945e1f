"""The queue's lists: whose they are, in which order, what shares a row, what is too
much, and that the statement agrees with the rule it repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.template.loader import render_to_string
from guardian.shortcuts import remove_perm

from desk.components import badges, visibility
from desk.queue import page as queue
from desk.queue import search
from desk.queue.page import OwnFigures, QueueFilters
from desk.queue.search import QueueReach
from journal import clock
from policies.choices import Role
from policies.models import Person, Queue
from reviews import deadlines
from reviews.batches import formation
from reviews.choices import Scope
from reviews.decisions import recall, returns
from reviews.decisions.submission import PageEvidence
from reviews.holds import rows, take
from reviews.models import ApprovalRequest, Decision
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh, requests_of_every_kind
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import read_text
from tests.reviews import states
from tests.reviews.batches import batching

TIMES = "\N{MULTIPLICATION SIGN}"


def page(person: Person, **filters: Any) -> queue.QueuePage:
    person = fresh(person)
    said = QueueFilters.read({name: str(value) for name, value in filters.items()})
    return queue.build_queue_page(person, said, now=clock.now())


def ids(person: Person, **filters: Any) -> list[str]:
    return [row.id for band in page(person, **filters).bands for row in band]


def every_kind(gate: Gate) -> Iterator[ApprovalRequest]:
    yield from requests_of_every_kind(gate)
    yield states.recallable(gate)


def test_what_is_offered_counts_in_mine(gate: Gate) -> None:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    found = page(gate.tom, tab="mine")
    assert {tab.name: tab.count for tab in found.tabs}["mine"] == 1
    assert [row.offered for band in found.bands for row in band] == [True]
    factories.overdue(request)
    assert ids(gate.tom, tab="mine") == []


def test_a_batchs_row_says_how_many_approvals_were_undone(gate: Gate) -> None:
    states.recall_windows(gate)
    first, *_ = batching.proposed(gate, *["7.00"] * 4)
    factories.decide(first, gate.rita)
    recall.recall_approval(request_id=first.pk, person=gate.rita)
    formation.form_missed_batches()
    (row,) = [row for band in page(gate.rita).bands for row in band]
    assert row.state
    assert row.state.note == "1 of 4 undone"
    (row,) = [row for band in page(gate.sue).bands for row in band]
    assert row.state
    assert "Approval undone" not in f"{row.state.word} {row.state.note}"
    rows.release_hold(request_id=first.pk, person=gate.rita)
    (row,) = [row for band in page(gate.tom).bands for row in band]
    assert row.state
    assert row.state.word == "1 of 4 undone"


def test_open_is_exactly_what_may_be_decided(gate: Gate) -> None:
    list(every_kind(gate))
    for name in ("rita", "tom", "sue", "sam"):
        person = fresh(gate.people[name])
        decidable = set(
            visibility.select_decidable(person).values_list("pk", flat=True)
        )
        assert set(ids(person)) == decidable, name


def test_open_and_waiting_are_everything_that_waits(gate: Gate) -> None:
    list(every_kind(gate))
    late = ApprovalRequest.objects.filter(expires_at__lte=clock.now())
    still = ApprovalRequest.objects.filter(status__in=["pending", "recallable"])
    waits = set(still.exclude(pk__in=late).values_list("pk", flat=True))
    for name in ("rita", "sue"):
        person = gate.people[name]
        mine, others = ids(person), ids(person, tab="waiting")
        assert not set(mine) & set(others), name
        assert set(mine) | set(others) == waits, name
    assert set(ids(gate.otto)) == set(ids(gate.adam)) == waits


def test_what_others_queues_hold_waits_for_others(gate: Gate) -> None:
    request = propose(gate.agent).request
    remove_perm("policies.decide", gate.sue, Queue.objects.get(name="money"))
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    assert ids(gate.sue, tab="waiting") == [request.pk]
    assert ids(gate.rita, tab="waiting") == []


def test_an_owner_sees_the_own_agents_requests(gate: Gate) -> None:
    request = propose(gate.agent).request
    propose(factories.agent(gate.rita, "other"), customer="C-2")
    assert ids(gate.owen) == [request.pk]
    gate.owen.groups.add(Group.objects.get(name=Role.REVIEWER))
    assert ids(gate.owen) == []
    assert request.pk in ids(gate.owen, tab="waiting")


def test_a_stopped_reviewer_has_an_empty_list(gate: Gate) -> None:
    propose(gate.agent)
    key = gate.rita.public_id
    stops.create_stop(scope=Scope.REVIEWER, key=key, person=gate.adam, reason="left")
    assert ids(gate.rita) == []


def test_mine_is_what_i_hold_and_what_was_given_to_me(gate: Gate) -> None:
    held, given, other = (
        propose(gate.agent, customer=c).request for c in ("C-1", "C-2", "C-3")
    )
    take.take_hold(request_id=held.pk, person=gate.rita)
    returns.assign_request(request_id=given.pk, person=gate.sue, to=gate.rita)
    take.take_hold(request_id=other.pk, person=gate.tom)
    assert set(ids(gate.rita, tab="mine")) == {held.pk, given.pk}
    counts = {tab.name: tab.count for tab in page(gate.rita).tabs}
    assert counts["mine"] == 2


def test_a_row_says_who_holds_it_and_the_number_counts_it(gate: Gate) -> None:
    mine, theirs = (propose(gate.agent, customer=c).request for c in ("C-1", "C-2"))
    take.take_hold(request_id=mine.pk, person=gate.rita)
    take.take_hold(request_id=theirs.pk, person=gate.tom)
    found = page(gate.rita)
    said = {row.id: str(row.state) for band in found.bands for row in band}
    assert "Claimed by you" in said[mine.pk]
    assert "Tom Example" in said[theirs.pk]
    assert {tab.name: tab.count for tab in found.tabs}["open"] == 2


def again(gate: Gate, run: str, **fields: Any) -> ApprovalRequest:
    return propose(gate.agent, "write", thread=run, **fields).request


def test_identical_proposals_share_a_row_and_stay_requests(gate: Gate) -> None:
    first, *_ = [again(gate, f"t-{n}") for n in range(3)]
    other = again(gate, "t-9", args={"to": "a friend", "text": "other"})
    (band,) = page(gate.rita).bands
    said = {row.id: row.head.repeats for row in band}
    assert set(said) == {first.pk, other.pk}
    assert said[first.pk].startswith(f"{TIMES}3 since ")
    assert said[other.pk] == ""
    assert badges.count_badges(fresh(gate.rita)).queue == 4


def test_the_link_of_a_shared_row_lists_every_one(gate: Gate) -> None:
    made = {again(gate, f"t-{n}").pk for n in range(3)}
    row = page(gate.rita).bands[0][0]
    key = row.head.repeats_url.partition("same=")[2]
    assert set(ids(gate.rita, same=key)) == made


def test_once_the_first_is_decided_the_next_stands_for_them(gate: Gate) -> None:
    first, second, _ = (again(gate, f"t-{n}") for n in range(3))
    decide(first, gate.tom, "reject")
    row = page(gate.rita).bands[0][0]
    assert (row.id, row.head.repeats[:2]) == (second.pk, f"{TIMES}2")


def test_one_that_only_i_may_not_decide_hides_no_other(gate: Gate) -> None:
    first, second = (again(gate, f"t-{n}") for n in range(2))
    decide(first, gate.rita, "escalate", reason_code="unsafe")
    assert ids(gate.rita) == [second.pk]
    assert ids(gate.rita, tab="waiting") == [first.pk]


def test_another_agents_or_another_risks_are_not_the_same(gate: Gate) -> None:
    other = factories.agent(gate.owen, "other")
    propose(gate.agent, "write", thread="t-1")
    propose(other, "write", thread="t-1")
    propose(gate.agent, "write", thread="t-2", priority="critical")
    assert [row.head.repeats for row in page(gate.rita).bands[0]] == ["", "", ""]


def test_a_revision_is_no_longer_the_same(gate: Gate) -> None:
    first, second = (propose(gate.agent, thread=f"t-{n}") for n in range(2))
    assert first.request.repeat_key == second.request.repeat_key
    factories.revise(gate.agent, second)
    second.request.refresh_from_db()
    assert first.request.repeat_key != second.request.repeat_key


@pytest.mark.parametrize("tab", ["open", "waiting", "done", "mine"])
def test_every_filter_narrows_every_tab(gate: Gate, tab: str) -> None:
    request = propose(gate.agent).request
    for filters in (
        {"risk": "critical"},
        {"tool": "write"},
        {"agent": "nobody"},
        {"q": "nothing like it"},
        {"same": "0" * 32},
    ):
        assert ids(gate.rita, tab=tab, **filters) == []
    assert page(gate.rita, tab=tab, q="x").bands == []
    fitting = {"risk": "high", "tool": "pay", "agent": "riley", "q": request.pk.upper()}
    found = ids(gate.rita, tab=tab, **fitting)
    assert found == ([request.pk] if tab == "open" else [])


@pytest.mark.parametrize("said", ["%", "_", "'", "\\", "%(me)s", "\0", "x" * 500])
def test_what_is_searched_for_is_text(gate: Gate, said: str) -> None:
    propose(gate.agent)
    assert ids(gate.rita, q=said) in ([], ids(gate.rita))


def test_a_run_is_found_by_a_part_of_its_name(gate: Gate) -> None:
    request = propose(gate.agent, thread="order_78291").request
    propose(gate.agent, customer="C-2", thread="order_5")
    assert ids(gate.rita, q="8291") == [request.pk]


def test_newest_and_oldest_turn_the_list_round(gate: Gate) -> None:
    made = [propose(gate.agent, customer=f"C-{n}").request.pk for n in range(3)]
    assert ids(gate.rita, sort="oldest") == made
    assert ids(gate.rita, sort="newest") == made[::-1]


def test_more_than_a_page_says_so_and_goes_on(gate: Gate) -> None:
    for number in range(3):
        propose(gate.agent, customer=f"C-{number}")
    reach = QueueReach.of(fresh(gate.rita))
    found = search.find_requests(reach, QueueFilters(show=2), now=clock.now())
    assert len(found) == 3  # one more than is shown, so that there is a link


def test_done_holds_my_decisions_and_what_expired(gate: Gate) -> None:
    mine, theirs, late, overdue = (
        propose(gate.agent, customer=f"C-{n}").request for n in range(4)
    )
    decide(mine, gate.rita, "reject")
    decide(theirs, gate.tom, "reject")
    factories.overdue(late)
    deadlines.expire_chunk()
    factories.overdue(overdue)
    assert set(ids(gate.rita, tab="done")) == {mine.pk, late.pk, overdue.pk}
    assert len(ids(gate.otto, tab="done")) == 4
    said = {r.id: str(r.state) for r in page(gate.rita, tab="done").bands[0]}
    assert "You rejected" in said[mine.pk]


def test_the_choices_are_of_what_i_may_read(gate: Gate) -> None:
    propose(gate.agent)
    propose(factories.agent(gate.owen, "other"), "write")
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="mail"))
    found = {
        one.name: [o.value for o in one.options] for one in page(gate.rita).choices
    }
    assert found["agent"] == ["", "riley"]
    assert "write" not in found["tool"]
    assert "pay" in found["tool"]


def test_who_reads_only_has_no_figures_of_deciding(gate: Gate) -> None:
    assert page(gate.otto).own is None
    own = page(gate.rita).own
    assert own is not None
    assert (own.today, own.week, own.seconds) == (0, 0, None)


def test_mine_begins_with_ones_own_week_even_when_something_waits(
    gate: Gate, as_: SignIn
) -> None:
    verdicts = ("approve", "reject", "approve")
    for number, took in enumerate((4000, 9000, 30000)):
        request = propose(gate.agent, customer=f"C-{number}").request
        decide(request, gate.rita, verdicts[number], page=PageEvidence(took_ms=took))
    first = Decision.objects.earliest("at")
    worlds.rewrite(Decision, first.pk, at=first.at - timedelta(days=3))
    waiting = propose(gate.agent, customer="C-9").request
    take.take_hold(request_id=waiting.pk, person=gate.rita)
    answer = as_("rita").get("/queue/", {"tab": "mine"})
    assert waiting.pk in answer.content.decode()
    assert read_text(answer, "own") == (
        "You decided 2 requests today and 3 in seven days: 0 changed, 1 rejected,"
        " at the median after 9 s."
    )
    assert page(gate.rita).own is None, "only Mine, and a list without rows, has them"
    assert page(gate.tom, tab="mine").own == OwnFigures(0, 0, 0, 0, 0, None)


def crowd(gate: Gate, count: int) -> None:
    for number in range(count):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")


def test_more_than_25_for_each_at_the_desk_is_too_much(gate: Gate) -> None:
    crowd(gate, 25)
    assert not page(gate.rita).overloaded
    propose(gate.agent, customer="C-99", thread="t-99")
    assert page(gate.rita).overloaded
    for person, request in zip(
        (gate.tom, gate.sue), ApprovalRequest.objects.all(), strict=False
    ):
        take.take_hold(request_id=request.pk, person=person)
    assert not page(gate.rita).overloaded


def test_more_due_than_the_pace_allows_is_too_much(gate: Gate) -> None:
    found = page(gate.sue).figures
    assert not found.overloaded
    assert replace(found, due=25).lapsing == 0
    assert replace(found, due=27).lapsing == 2
    assert replace(found, due=27).overloaded
    assert not replace(found, due=27, pace=30).overloaded


def test_what_is_over_is_told_in_words(gate: Gate) -> None:
    since = clock.now()
    approved, rejected, late, held = (
        propose(gate.agent, customer=f"C-{n}").request for n in range(4)
    )
    decide(approved, gate.tom)
    decide(rejected, gate.sue, "reject")
    factories.overdue(late)
    deadlines.expire_chunk()
    said = {
        one.id: one.outcome for one in queue.list_gone_requests(fresh(gate.rita), since)
    }
    assert said == {
        approved.pk: "Approved by Tom Example",
        rejected.pk: "Rejected by Sue Example",
        late.pk: "Expired",
    }
    assert queue.list_gone_requests(fresh(gate.otto), since) == []
    assert held.pk not in said


def test_nobody_is_named_of_what_can_still_be_recalled(gate: Gate) -> None:
    since = clock.now()
    request = states.recallable(gate)
    (found,) = queue.list_gone_requests(fresh(gate.tom), since)
    assert (found.id, found.outcome) == (request.pk, "Approved")


def amounts_of(person: Person, **filters: Any) -> list[str]:
    found = page(person, **filters)
    return [row.head.amount for band in found.bands for row in band]


def propose_amounts(gate: Gate) -> None:
    for number, (amount, currency) in enumerate(
        [("6.90", "USD"), ("899.00", "USD"), ("89.00", "USD"), ("70.00", "EUR")]
    ):
        args = {"customer": f"C-{number}", "amount": amount, "currency": currency}
        propose(gate.agent, args=args)
    propose(gate.agent, "write")


def test_requests_are_sorted_by_currency_then_amount_with_none_last(gate: Gate) -> None:
    propose_amounts(gate)
    largest = ["899.00 USD", "89.00 USD", "6.90 USD", "70.00 EUR", ""]
    assert amounts_of(gate.sue, sort="largest") == largest
    smallest = ["70.00 EUR", "6.90 USD", "89.00 USD", "899.00 USD", ""]
    assert amounts_of(gate.sue, sort="smallest") == smallest


@pytest.mark.parametrize("sort", ["largest", "smallest"])
def test_pages_by_amount_keep_what_lies_beyond_their_end(gate: Gate, sort: str) -> None:
    propose_amounts(gate)
    every = ids(gate.sue, sort=sort)
    assert len(every) == 5
    for show in range(1, 5):
        filters = replace(QueueFilters(sort=sort), show=show)
        reach = QueueReach.of(fresh(gate.sue))
        found = search.find_requests(reach, filters, now=clock.now())
        assert [one.id for one in found] == every[: show + 1]


def test_the_heading_of_amounts_sorts_both_ways_and_keeps_the_filters(
    gate: Gate,
) -> None:
    first = QueueFilters(risk="high")
    assert first.amount_order == ""
    second = QueueFilters(risk="high", sort="largest")
    assert first.amount_url == second.url()
    assert second.amount_url == second.url(sort="smallest")
    assert (second.amount_order, second.differs) == ("descending", True)
    assert second.url() == page(gate.sue, risk="high", sort="largest").filters.url()
    assert not QueueFilters(tab="done").amount_url


def test_an_amount_that_the_page_conceals_is_in_no_list(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"] |= {"sensitive": ["amount"]}
    factories.policy(gate.people, document)
    propose(gate.agent, amount="12.00")
    assert amounts_of(gate.sue, sort="largest") == [""]


def test_a_row_says_how_old_its_request_is(gate: Gate) -> None:
    request = propose(gate.agent).request
    before = request.opened_at - timedelta(minutes=12)
    ApprovalRequest.objects.filter(pk=request.pk).update(opened_at=before)
    (band,) = page(gate.rita).bands
    assert timedelta(minutes=12) <= band[0].age < timedelta(minutes=13)
    table = render_to_string("desk/components/_row_table.html", {"bands": [band]})
    assert "12 min old" in table
