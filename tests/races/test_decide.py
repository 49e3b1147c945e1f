"""Many decide at once: one decision wins, quorum is never lost, a no stays a no
(T2, T3)."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from journal import errors
from journal.models import LogRecord, OutboxMessage
from policies.choices import Role
from policies.models import Person
from reviews import locks, transitions
from reviews.choices import RequestStatus, Verdict
from reviews.decisions import decide as decisions
from reviews.decisions import votes
from reviews.decisions.submission import VerdictSubmission
from reviews.models import ApprovalRequest, Decision, Execution, Grant
from tests import factories, guards
from tests.conftest import Gate
from tests.factories import decide, propose, said
from tests.races.together import (
    Call,
    Result,
    Together,
    at_once,
    before,
    measured,
    while_held,
)

pytestmark = [pytest.mark.django_db(transaction=True)]
Recorder = Callable[[str, str], None]

APPROVE, REJECT = Verdict.APPROVE, Verdict.REJECT


def fresh(people: Sequence[Person]) -> list[Person]:
    """As each web request loads them: nothing remembered from the one before."""
    return [copy.copy(person) for person in people]


def verdicts(
    request: ApprovalRequest, people: Sequence[Person], words: Sequence[Verdict]
) -> Iterator[Callable[[], Any]]:
    for person, word in zip(fresh(people), words, strict=True):
        seen = VerdictSubmission(
            request_id=request.pk,
            person=person,
            verdict=word,
            version=request.version,
            action_hash=request.action_hash,
            reason_code=factories.reason_for(word),
        )
        yield partial(decisions.decide_request, factories.proved(seen))


def percentile(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return 1000 * ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def asked(gate: Gate, number: int, amount: str = "40.00") -> ApprovalRequest:
    customer, run = f"C-{number}", factories.new_thread()
    return propose(gate.agent, amount=amount, customer=customer, thread=run).request


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_of_many_simultaneous_deciders_exactly_one_wins(
    gate: Gate,
    crowd: Callable[..., list[Person]],
    proof_n: Callable[..., int],
    record_proof: Recorder,
) -> None:
    """T2, I4, I5: half approve, half reject."""
    count, people = proof_n(small=10, full=1000), crowd(32, Role.REVIEWER)
    words = [APPROVE, REJECT] * 16
    alone = [
        measured(next(verdicts(asked(gate, -n), people[:1], [APPROVE])))
        for n in range(1, max(count // 10, 10) + 1)
    ]
    raced: list[Result] = []
    with Together(32) as together:
        for number in range(count):
            request = asked(gate, number)
            random.shuffle(words)
            results = together.run(list(verdicts(request, people, words)))
            check_one_winner(request, results)
            raced += results
    p99, one = (percentile([r.seconds for r in x], 0.99) for x in (raced, alone))
    record_proof(
        "T2",
        f"{count:,} requests x 32 deciders: {count:,} of {count:,} exactly one winner;"
        f" p99 {p99:.1f} ms, one decision alone {one:.1f} ms ({p99 / one:.1f} x)",
    )
    assert not guards.proving() or p99 < 32 * one


def check_one_winner(request: ApprovalRequest, results: list[Result]) -> None:
    """One row, one grant if it is a yes, one record, one message; 31 log records."""
    assert [r.won for r in results].count(True) == 1
    losers = [r.refusal for r in results if r.refusal]
    assert {type(error) for error in losers} == {errors.AlreadyDecided}
    request.refresh_from_db()
    yes = request.status == RequestStatus.AUTHORIZED
    decision = Decision.objects.get(request=request)
    assert decision.verdict == (APPROVE if yes else REJECT)
    assert yes or request.status == RequestStatus.REJECTED
    check_effects(request, grants=int(yes))
    late = LogRecord.objects.filter(request=request.pk, kind="decision.refused")
    assert late.count() == 31


def check_effects(request: ApprovalRequest, *, grants: int) -> None:
    """What follows from a settled request follows once."""
    assert Grant.objects.filter(proposal=request.proposal_id).count() == grants
    executions = Execution.objects.filter(proposal=request.proposal_id)
    assert executions.count() == grants
    settled = LogRecord.objects.filter(
        request=request.pk, kind__in=["request.authorized", "request.rejected"]
    )
    assert settled.count() == 1
    outbox = OutboxMessage.objects.filter(topic="request.settled", subject=request.pk)
    assert outbox.count() == 1
    nudges = [row.pk for row in executions]
    assert OutboxMessage.objects.filter(subject__in=nudges).count() == grants


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_two_of_two_simultaneous_approvals_are_enough(
    gate: Gate, proof_n: Callable[..., int], record_proof: Recorder
) -> None:
    """T3: without the lock on the parent each would count only its own vote."""
    count = proof_n(small=20, full=1000)
    with Together(2) as together:
        for number in range(count):
            request = asked(gate, number, "899.00")
            both = verdicts(request, [gate.sue, gate.sam], [APPROVE, APPROVE])
            results = together.run(list(both))
            assert [r.won for r in results] == [True, True]
            request.refresh_from_db()
            assert request.status == RequestStatus.AUTHORIZED
            check_effects(request, grants=1)
    record_proof("T3", f"two of two, {count:,} races: 0 stuck, 0 wrong")


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_two_of_three_simultaneous_approvals_are_enough(
    gate: Gate,
    crowd: Callable[..., list[Person]],
    proof_n: Callable[..., int],
    record_proof: Recorder,
) -> None:
    """T3: the third vote is late; it is a log record and has no effect [I8, I10]."""
    count = proof_n(small=20, full=1000)
    people = [gate.sue, gate.sam, *crowd(1, Role.SUPERVISOR)]
    with Together(3) as together:
        for number in range(count):
            request = asked(gate, number, "899.00")
            results = together.run(list(verdicts(request, people, [APPROVE] * 3)))
            assert sorted(r.won for r in results) == [False, True, True]
            assert {type(r.refusal) for r in results if r.refusal} == {
                errors.AlreadyDecided
            }
            request.refresh_from_db()
            assert request.status == RequestStatus.AUTHORIZED
            check_effects(request, grants=1)
            assert Decision.objects.filter(request=request).count() == 2
    record_proof("T3", f"two of three, {count:,} races: 0 stuck, 0 wrong")


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_no_beside_two_simultaneous_approvals(
    gate: Gate,
    crowd: Callable[..., list[Person]],
    proof_n: Callable[..., int],
    record_proof: Recorder,
) -> None:
    """T3, I7: whoever comes first settles it; a no that was taken is final."""
    count = proof_n(small=20, full=1000)
    people = [gate.sue, gate.sam, *crowd(1, Role.SUPERVISOR)]
    denied = 0
    with Together(3) as together:
        for number in range(count):
            request = asked(gate, number, "899.00")
            *yes, no_ = verdicts(request, people, [APPROVE, APPROVE, REJECT])
            results = together.run([*yes, late(no_, request)])
            request.refresh_from_db()
            no = results[2].won
            denied += no
            expected = RequestStatus.REJECTED if no else RequestStatus.AUTHORIZED
            assert request.status == expected
            assert no or (results[0].won and results[1].won)
            check_effects(request, grants=int(not no))
    record_proof(
        "T3",
        f"deny against two approvals, {count:,} races: 0 stuck, 0 wrong"
        f" ({denied:,} denied, {count - denied:,} approved first)",
    )


def late(call: Call, request: ApprovalRequest) -> Call:
    """The same call after a few reads, by chance: a no must not always be first."""

    def run() -> None:
        for _ in range(random.randrange(16)):
            request.proposal.revisions.count()
        call()

    return run


def test_a_second_vote_waits_for_the_first_and_counts_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interleaving that loses a quorum without the lock: the rival votes between
    the first one's vote and its count."""
    request = asked(gate, 1, "899.00")
    late = partial(decide, request, gate.sam)
    rival = while_held(monkeypatch, votes, "_build_log_entry", late)
    decide(ApprovalRequest.objects.get(pk=request.pk), gate.sue)
    assert rival.result.won
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    check_effects(request, grants=1)


def test_a_rejection_right_before_the_lock_is_final(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: the approval was on its way when the no came."""
    request = asked(gate, 1)
    seen = said(request, gate.tom)
    rival = before(
        monkeypatch,
        locks,
        "lock_request_or_canary",
        lambda: decide(request, gate.rita, "reject"),
    )
    with pytest.raises(errors.AlreadyDecided):
        decisions.decide_request(seen)
    assert rival.result.won
    request.refresh_from_db()
    assert request.status == RequestStatus.REJECTED
    check_effects(request, grants=0)


def test_a_revision_right_before_the_lock_makes_the_verdict_stale(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: nobody approves bytes that they have not seen."""
    request = asked(gate, 1)
    seen = said(request, gate.rita)
    proposal = request.proposal
    before(
        monkeypatch,
        locks,
        "lock_request_or_canary",
        lambda: factories.revise(gate.agent, proposal, amount="60.00"),
    )
    with pytest.raises(errors.StaleVersion):
        decisions.decide_request(seen)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    assert not Decision.objects.exists()


def test_one_person_in_two_tabs_votes_once(gate: Gate) -> None:
    """I10: two approvals by one human are one, at the same moment too."""
    for number in range(5):
        request = asked(gate, number, "899.00")
        calls = list(verdicts(request, [gate.sue] * 4, [APPROVE] * 4))
        results = at_once(*calls)
        assert [r.won for r in results].count(True) == 1
        assert {type(r.refusal) for r in results if r.refusal} == {errors.NotPermitted}
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING


def test_of_an_edit_and_an_approval_one_is_stale_or_late(gate: Gate) -> None:
    """Edited and original bytes are never both granted."""
    for number in range(10):
        request = asked(gate, number)
        args = {"customer": f"C-{number}", "amount": "20.00", "currency": "USD"}
        results = at_once(
            partial(decisions.decide_request, said(request, gate.rita)),
            partial(
                decisions.decide_request, said(request, gate.tom, "modify", args=args)
            ),
        )
        assert [r.won for r in results].count(True) == 1
        request.refresh_from_db()
        assert request.status == RequestStatus.AUTHORIZED
        check_effects(request, grants=1)
        grant = Grant.objects.get(proposal=request.proposal_id)
        assert grant.action_hash == request.action_hash


def test_a_revision_that_waits_for_an_edit_comes_after_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = propose(gate.agent)
    request = proposal.request
    above = {"customer": "C-1", "amount": "600.00", "currency": "USD"}
    rival = while_held(
        monkeypatch,
        transitions.request,
        "apply",
        partial(factories.revise, gate.agent, proposal, customer="C-1"),
    )
    decide(request, gate.rita, "modify", args=above)
    assert rival.result.won
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert request.sealed.revision.number == request.version == 3
    assert proposal.revisions.count() == 3
