"""A move to another queue meets a decision and another move."""

from __future__ import annotations

from functools import partial

import pytest
from guardian.shortcuts import remove_perm

from journal import errors
from policies.models import Person, Queue
from reviews import transitions
from reviews.choices import RequestStatus
from reviews.decisions import decide as decisions
from reviews.decisions import moves
from reviews.models import ApprovalRequest, Decision, RequestVersion
from tests.conftest import Gate
from tests.factories import propose, said
from tests.races.together import at_once, while_held

pytestmark = [pytest.mark.django_db(transaction=True)]


def move(request: ApprovalRequest, person: Person, to: str = "mail") -> ApprovalRequest:
    return moves.move_request(
        request_id=request.pk,
        person=person,
        to=Queue.objects.get(name=to),
        reason="They know the customer.",
    )


def test_of_a_move_and_a_decision_one_wins(gate: Gate) -> None:
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="mail"))
    for number in range(10):
        request = propose(gate.agent, customer=f"C-{number}").request
        decided, moved = at_once(
            partial(decisions.decide_request, said(request, gate.rita)),
            partial(move, request, gate.sue),
        )
        assert decided.won != moved.won
        found = ApprovalRequest.objects.select_related("queue").get(pk=request.pk)
        votes = Decision.objects.filter(request=request).count()
        versions = RequestVersion.objects.filter(request=request).count()
        if moved.won:
            assert (found.status, found.queue.name) == ("pending", "mail")
            assert (votes, versions) == (0, 2)
            refusal = decided.refusal
            assert isinstance(refusal, errors.NotPermitted | errors.StaleVersion), (
                refusal
            )
        else:
            assert (found.status, found.queue.name) == ("authorized", "money")
            assert (votes, versions) == (1, 1)
            assert isinstance(moved.refusal, errors.AlreadyDecided)


def test_a_decision_that_waited_for_a_move_is_refused(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    verdict = said(request, gate.rita)
    rival = while_held(
        monkeypatch,
        transitions.request,
        "apply_many",
        partial(decisions.decide_request, verdict),
    )
    move(request, gate.sue)
    assert isinstance(rival.result.refusal, errors.StaleVersion)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert not Decision.objects.exists()


def test_of_two_moves_the_second_starts_from_the_first(gate: Gate) -> None:
    for number in range(5):
        request = propose(gate.agent, customer=f"C-{number}").request
        results = at_once(
            partial(move, request, gate.sue, "mail"),
            partial(move, request, gate.sam, "odd"),
        )
        assert all(result.won for result in results)
        numbers = request.versions.order_by("number").values_list("number", "cause")
        assert list(numbers) == [(1, "opened"), (2, "moved"), (3, "moved")]
