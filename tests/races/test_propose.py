"""Many propose at once: one key is one proposal, one thread begins once, and no two are
the first of a sum (T22)."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from agents import idempotency, intake, keys, proposals, transitions
from agents.idempotency import CallKey
from agents.models import Agent, IdempotencyKey, Thread
from agents.schemas.proposals import ProposalIn
from agents.webhooks import endpoints
from journal import clock, errors
from journal.models import LogRecord
from policies import evaluation
from reviews.executions import settle
from reviews.models import ApprovalRequest, Proposal
from reviews.requests import proposals as gate_proposals
from tests import factories, worlds
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import proposal_body, propose
from tests.races.together import at_once, before, while_held
from tests.reviews.executions import attempts

pytestmark = [pytest.mark.django_db(transaction=True)]


def key_of(text: str, body: ProposalIn) -> CallKey:
    said = body.model_dump(mode="json")
    return intake.parse_call_key(text, "POST", "/proposals", said)


def proposing(agent: Agent, key: str, **fields: Any) -> Callable[[], Any]:
    """What the view does once it has not found the key."""
    body = proposal_body(**fields)
    asked = intake.build_proposal_input(agent, body)
    return partial(
        proposals.propose_action, agent=agent, key=key_of(key, body), asked=asked
    )


def test_many_at_once_keep_to_the_daily_limit(gate: Gate) -> None:
    Agent.objects.filter(pk=gate.agent.pk).update(daily_proposals=3)
    gate.agent.refresh_from_db()
    calls = [
        proposing(gate.agent, f"k-{n}", customer=f"C-{n}", thread=f"t-{n}")
        for n in range(12)
    ]
    results = at_once(*calls)
    assert sum(result.won for result in results) == 3
    assert Proposal.objects.count() == 3


def test_many_at_once_keep_to_the_budget_of_money(gate: Gate) -> None:
    """Of twelve payments of 40.00 by three tools three fit into 130.00, and revisions
    of those that wait do not exceed it either."""
    Agent.objects.filter(pk=gate.agent.pk).update(daily_money={"USD": "130.00"})
    gate.agent.refresh_from_db()
    tools = ("pay", "pay_queryable", "pay_opaque")
    calls = [
        proposing(
            gate.agent, f"k-{n}", tool=tools[n % 3], customer=f"C-{n}", thread=f"t-{n}"
        )
        for n in range(12)
    ]
    results = at_once(*calls)
    assert sum(result.won for result in results) == 3
    rest = [result.refusal for result in results if not result.won]
    assert all(isinstance(refusal, errors.AgentRateLimited) for refusal in rest)
    waiting = list(Proposal.objects.all())
    revised = at_once(
        *[
            partial(
                factories.revise,
                gate.agent,
                proposal,
                customer=proposal.current.args["customer"],
                amount="50.00",
            )
            for proposal in waiting
        ]
    )
    assert sum(result.won for result in revised) == 1


@pytest.mark.proof
def test_one_key_at_the_same_moment_is_one_proposal(
    gate: Gate, proof_n: Callable[..., int], record_proof: Callable[[str, str], None]
) -> None:
    """T22, I23: at the operation itself, past the look-up that answers replays."""
    count = proof_n(small=20, full=50)
    calls = [proposing(gate.agent, "the-key") for _ in range(count)]
    results = at_once(*calls)
    assert all(r.won for r in results)
    assert len({json.dumps(r.value.body, sort_keys=True) for r in results}) == 1
    check_one(gate.agent)
    record_proof("T22", f"{count} concurrent, one key, operation: 1 request")


def check_one(agent: Agent) -> None:
    """One of everything that a proposal leaves behind."""
    proposal = Proposal.objects.get(agent=agent.slug)
    assert ApprovalRequest.objects.get().proposal_id == proposal.pk
    assert IdempotencyKey.objects.get().proposal == proposal.pk
    kinds = Counter(LogRecord.objects.values_list("kind", flat=True))
    assert kinds["proposal.submitted"] == kinds["request.opened"] == 1


def test_the_same_action_at_the_same_moment_is_one_request(gate: Gate) -> None:
    """Each call has a key of its own; all but one join the first."""
    count = 12
    results = at_once(*[proposing(gate.agent, f"racer-{n}") for n in range(count)])
    assert all(result.won for result in results)
    assert sorted(result.value.status for result in results) == [200] * 11 + [201]
    request = ApprovalRequest.objects.get()
    assert request.joined == count - 1
    assert {result.value.proposal for result in results} == {request.proposal_id}


def test_a_decision_beside_joining_calls_loses_none(gate: Gate) -> None:
    """No deadlock, and every call gets the proposal it joined or one of its own."""
    request = propose(gate.agent).request
    verdict = partial(factories.decide, request, gate.rita, "reject")
    results = at_once(*[proposing(gate.agent, f"racer-{n}") for n in range(3)], verdict)
    assert all(result.won for result in results)
    answers = [result.value for result in results[:-1]]
    joined = [one for one in answers if one.status == 200]
    repeats = Proposal.objects.filter(repeats=request.proposal_id)
    request.refresh_from_db()
    assert len(joined) == request.joined
    assert len(answers) - len(joined) == repeats.count()
    assert ApprovalRequest.objects.count() == 1


@pytest.fixture
def caller(gate: Gate) -> Caller:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    return Caller(key, itertools.count())


@pytest.mark.proof
def test_one_key_at_the_same_moment_over_http(
    caller: Caller,
    gate: Gate,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T22: one 201; the others are replays, or told that it is in progress."""
    count = proof_n(small=20, full=50)
    results = at_once(*[partial(caller.propose, key="the-key")] * count)
    answers = [result.value for result in results]
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses[201] == 1
    assert statuses[201] + statuses[200] + statuses[409] == count
    assert len({a.json()["id"] for a in answers if a.status_code != 409}) == 1
    check_one(gate.agent)
    said = ", ".join(f"{n} x {status}" for status, n in sorted(statuses.items()))
    record_proof("T22", f"{count} concurrent, one key, HTTP: 1 request ({said})")


@pytest.mark.proof
def test_other_bodies_under_one_key_at_the_same_moment(
    caller: Caller, gate: Gate, record_proof: Callable[[str, str], None]
) -> None:
    """T22: one body is proposed; every other one is 422."""
    amounts = [f"{n}.00" for n in range(10, 26)]
    calls = [partial(caller.propose, key="the-key", amount=a) for a in amounts]
    statuses = Counter(r.value.status_code for r in at_once(*calls))
    assert statuses == {201: 1, 422: len(amounts) - 1}
    check_one(gate.agent)
    record_proof("T22", f"same key, {len(amounts)} bodies: 1 x 201, the others 422")


@pytest.mark.proof
def test_a_replay_after_thirty_days_is_the_same_answer(
    caller: Caller, gate: Gate, record_proof: Callable[[str, str], None]
) -> None:
    """T22: the longest wait is 90 days; the key is kept longer, whatever happened
    since."""
    first = caller.propose(key="the-key")
    factories.decide(ApprovalRequest.objects.get(), gate.rita, "reject")
    kept = IdempotencyKey.objects.get()
    worlds.rewrite(IdempotencyKey, kept.pk, created_at=clock.now() - timedelta(days=30))
    again = caller.propose(key="the-key")
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    assert again.json() == first.json()
    record_proof("T22", "replay after 30 days: the same answer")


def test_a_rival_with_the_same_key_waits_and_replays(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one's INSERT waits for the first one's commit."""
    rival = while_held(
        monkeypatch, gate_proposals, "govern", proposing(gate.agent, "the-key")
    )
    stored = proposing(gate.agent, "the-key")()
    assert rival.result.value.body == stored.body
    check_one(gate.agent)


def test_when_the_first_one_fails_the_rival_is_the_first(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rolled back proposal leaves no key behind: the agent may ask again."""
    first = proposing(gate.agent, "the-key")
    rival = while_held(
        monkeypatch, gate_proposals, "govern", proposing(gate.agent, "the-key")
    )
    monkeypatch.setattr(
        idempotency, "store_answer", failing_once(idempotency.store_answer)
    )
    with pytest.raises(ZeroDivisionError):
        first()
    assert rival.result.won
    check_one(gate.agent)


def failing_once(original: Callable[..., Any]) -> Callable[..., Any]:
    failures = iter([True])

    def store(*args: Any, **kwargs: Any) -> None:
        if next(failures, False):
            raise ZeroDivisionError
        original(*args, **kwargs)

    return store


def test_an_answer_that_is_not_there_yet_is_in_progress(gate: Gate) -> None:
    """I23: a key whose row was committed without its answer is never a second go."""
    body = proposal_body()
    key = key_of("the-key", body)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agents_idempotencykey (agent_id, key, fingerprint, proposal)"
            " VALUES (%s, %s, %s, '')",
            [gate.agent.pk, key.text, key.fingerprint],
        )
    with pytest.raises(errors.InProgress):
        proposing(gate.agent, "the-key")()
    assert not Proposal.objects.exists()


def test_first_proposals_of_a_new_thread_begin_it_once(gate: Gate) -> None:
    for number in range(5):
        calls = [
            proposing(gate.agent, f"{number}-{n}", thread=f"new-{number}", tool="look")
            for n in range(8)
        ]
        assert all(result.won for result in at_once(*calls))
        assert Thread.objects.filter(name=f"new-{number}").count() == 1
        begun = LogRecord.objects.filter(kind="thread.started", thread=f"new-{number}")
        assert begun.count() == 1
        assert Proposal.objects.filter(thread=f"new-{number}").count() == 8


def test_a_rival_begins_the_same_thread_first(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the INSERT somebody else's INSERT is committed."""
    rival = before(
        monkeypatch,
        transitions,
        "start_thread",
        proposing(gate.agent, "rival", tool="look"),
    )
    proposing(gate.agent, "mine", tool="look")()
    assert rival.result.won
    assert Thread.objects.count() == 1
    assert Proposal.objects.count() == 2


def test_no_two_proposals_are_the_first_of_a_sum(gate: Gate) -> None:
    """The split transaction at the same moment: of many payments of 49.00 to one
    customer two stay under 100.00 together, every further one needs supervisors."""
    for number in range(5):
        calls = [
            proposing(
                gate.agent,
                f"{number}-{n}",
                thread=f"t-{number}-{n}",
                amount="49.00",
                customer=f"C-{number}",
            )
            for n in range(6)
        ]
        tiers = Counter(r.value.body["tier"] for r in at_once(*calls))
        assert tiers == {"approve": 2, "escalate": 4}


def test_a_retry_and_a_proposal_are_not_both_the_first_of_a_sum(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they are over 100.00: whoever comes second is told so."""
    for number in range(5):
        of = {"amount": "80.00", "customer": f"C-{number}"}
        failed = attempts.declined(gate, monkeypatch, thread=f"f-{number}", **of)
        retried, proposed = at_once(
            partial(settle.retry_execution, execution_id=failed.pk, person=gate.rita),
            proposing(gate.agent, f"again-{number}", thread=f"t-{number}", **of),
        )
        tier = "escalate" if retried.won else "approve"
        assert proposed.value.body["tier"] == tier


def test_who_registers_an_endpoint_hears_of_what_is_just_being_proposed(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = partial(
        endpoints.register_endpoint,
        agent=gate.agent,
        url="https://a.example/hook",
        by=gate.people["owen"],
    )
    rival = while_held(monkeypatch, evaluation, "evaluate", register)
    proposal = propose(gate.agent)
    assert rival.result.won
    proposal.refresh_from_db()
    assert proposal.has_listener


def test_a_rival_to_a_sum_waits_until_this_one_counts(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent, amount="49.00", thread="t-0")
    rival = while_held(
        monkeypatch,
        evaluation,
        "evaluate",
        proposing(gate.agent, "rival", thread="t-2", amount="49.00"),
    )
    mine = proposing(gate.agent, "mine", amount="49.00")()
    assert mine.body["tier"] == "approve"
    assert rival.result.value.body["tier"] == "escalate"


def test_two_that_supersede_the_same_one(gate: Gate) -> None:
    """One takes its place; the other is told that it waits no more."""
    for number in range(5):
        old = propose(gate.agent, customer=f"C-{number}")
        calls = [
            proposing(
                gate.agent,
                f"{number}-{n}",
                thread=f"t-{number}-{n}",
                tool="look",
                supersedes=old.pk,
            )
            for n in range(3)
        ]
        results = at_once(*calls)
        assert [r.won for r in results].count(True) == 1
        assert {type(r.refusal) for r in results if r.refusal} == {errors.Conflict}


def test_a_refused_call_that_is_judged_again_by_many_is_one_proposal(
    gate: Gate,
) -> None:
    """Each of them has read the refusal that no longer holds."""
    refused = proposing(gate.agent, "the-key", tool="unknown")()
    factories.hold_unknown_tools(gate.people, "mail")
    count = 12
    calls = [proposing(gate.agent, "the-key", tool="unknown") for _ in range(count)]
    results = at_once(*calls)
    assert all(result.won for result in results)
    request = ApprovalRequest.objects.get()
    assert (request.joined, {r.value.proposal for r in results}) == (
        0,
        {request.proposal_id},
    )
    assert Proposal.objects.count() == 2
    assert refused.proposal != request.proposal_id


def test_a_policy_that_changes_while_a_refusal_is_replayed(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two calls that are judged again waits for the first one's
    answer."""
    proposing(gate.agent, "the-key", tool="unknown")()
    factories.hold_unknown_tools(gate.people, "mail")
    rival = while_held(
        monkeypatch,
        gate_proposals,
        "govern",
        proposing(gate.agent, "the-key", tool="unknown"),
    )
    stored = proposing(gate.agent, "the-key", tool="unknown")()
    assert not stored.replayed
    assert rival.result.value.replayed
    assert rival.result.value.body == stored.body
    assert ApprovalRequest.objects.count() == 1
