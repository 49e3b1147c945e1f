"""A message meets a decision, a revision and another message."""

from __future__ import annotations

from functools import partial

import pytest

from journal import errors
from reviews import transitions
from reviews.choices import RequestStatus
from reviews.decisions import decide as decisions
from reviews.models import ApprovalRequest, Message
from tests import factories
from tests.conftest import Gate
from tests.factories import propose, said
from tests.races.together import at_once, while_held
from tests.reviews.dialogue.talking import ask, reply, send_back

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_question_beside_a_verdict_is_asked_before_it_or_refused(gate: Gate) -> None:
    for number in range(10):
        request = propose(gate.agent, customer=f"C-{number}").request
        yes, asked = at_once(
            partial(decisions.decide_request, said(request, gate.rita)),
            partial(ask, request, gate.tom),
        )
        assert yes.won
        found = ApprovalRequest.objects.get(pk=request.pk)
        assert found.status == RequestStatus.AUTHORIZED
        assert found.message_count == Message.objects.filter(request=found).count()
        assert asked.won == bool(found.message_count)
        assert asked.won or isinstance(asked.refusal, errors.AlreadyDecided)


def test_a_question_that_waited_for_a_verdict_is_refused(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    rival = while_held(
        monkeypatch,
        transitions.request,
        "apply_many",
        partial(send_back, request, gate.tom),
    )
    decisions.decide_request(said(request, gate.rita))
    assert isinstance(rival.result.refusal, errors.AlreadyDecided)
    assert not Message.objects.exists()


def test_of_two_who_send_it_back_one_does(gate: Gate) -> None:
    for number in range(5):
        request = propose(gate.agent, customer=f"C-{number}").request
        results = at_once(
            *[partial(send_back, request, one) for one in (gate.rita, gate.tom)]
        )
        assert sorted(one.won for one in results) == [False, True]
        (lost,) = [one.refusal for one in results if one.refusal is not None]
        assert isinstance(lost, errors.AlreadySentBack)


def test_of_two_answers_one_counts(gate: Gate) -> None:
    for number in range(5):
        request = propose(gate.agent, customer=f"C-{number}").request
        ask(request, gate.rita)
        results = at_once(
            *[partial(reply, gate, request, text) for text in ("yes", "no")]
        )
        assert sorted(one.won for one in results) == [False, True]
        assert Message.objects.filter(request=request, kind="answer").count() == 1


def test_a_return_beside_a_revision_is_of_one_version_or_refused(gate: Gate) -> None:
    for number in range(5):
        proposal = propose(gate.agent, customer=f"C-{number}")
        request = proposal.request
        revised, back = at_once(
            partial(factories.revise, gate.agent, proposal, customer=f"C-{number}"),
            partial(send_back, request, gate.rita, version=1),
        )
        assert revised.won
        found = ApprovalRequest.objects.get(pk=request.pk)
        # A return of version 1 is over with version 2.
        assert (found.version, found.returned_at) == (2, None)
        assert back.won or isinstance(back.refusal, errors.StaleVersion)
