"""People ask the agent, answer it and send its request back. None of it decides."""

from __future__ import annotations

from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from journal import errors
from journal.models import LogRecord, OutboxMessage
from policies.choices import Role
from policies.models import Queue
from reviews import deadlines
from reviews.choices import MessageKind, RequestStatus, Scope, StopMode
from reviews.decisions import returns
from reviews.dialogue import messages
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, Hold, Message
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.dialogue.talking import ask, reply, send_back, shown

QUESTION = MessageKind.QUESTION


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    found: ApprovalRequest = propose(gate.agent).request
    return found


def now_of(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.get(pk=request.pk)


def kinds() -> list[str]:
    return list(LogRecord.objects.order_by("pk").values_list("kind", flat=True))


def test_a_question_and_its_answer_share_a_round(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    reply(gate, request_)
    asked, answered = Message.objects.order_by("pk")
    assert (asked.round, asked.kind, asked.author, asked.role) == (
        1,
        "question",
        gate.rita,
        Role.REVIEWER,
    )
    assert (answered.round, answered.kind, answered.by_agent) == (1, "answer", True)
    said: Any = shown(request_)["messages"]
    assert [(one["from"], one["kind"], one["text"], one["round"]) for one in said] == [
        ("reviewer", "question", "Which order?", 1),
        ("agent", "answer", "The one of Monday.", 1),
    ]


def test_a_message_decides_nothing(gate: Gate, request_: ApprovalRequest) -> None:
    before = now_of(request_)
    ask(request_, gate.rita)
    send_back(request_, gate.tom)
    after = now_of(request_)
    assert (after.status, after.version, after.expires_at) == (
        before.status,
        before.version,
        before.expires_at,
    )
    assert not Decision.objects.exists()
    decide(request_, gate.rita)
    assert now_of(request_).status == RequestStatus.AUTHORIZED


def test_the_log_has_each_message_without_its_words(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita, "Is Mrs Miller known?")
    reply(gate, request_, "She has an account.")
    send_back(request_, gate.rita, "Then halve it.")
    assert [kind for kind in kinds() if kind.startswith("request.")] == [
        "request.opened",
        "request.asked",
        "request.answered",
        "request.sent_back",
    ]
    leaves = b"".join(bytes(one.leaf) for one in LogRecord.objects.all())
    for words in (b"Miller", b"account", b"halve"):
        assert words not in leaves


def test_an_agents_words_are_stored_redacted(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    reply(gate, request_, "Write to ann@example.org.")
    assert factories.count_of("ann@example.org") == 0
    assert Message.objects.get(kind="answer").text.startswith("Write to [")


def test_a_persons_words_reach_the_agent_redacted(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita, "Is it for ann@example.org?")
    said: Any = shown(request_)["messages"]
    assert "ann@example.org" not in said[0]["text"]
    assert "ann@example.org" in Message.objects.get().text


def test_a_person_has_one_unanswered_question(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    with pytest.raises(errors.QuestionUnanswered):
        ask(request_, gate.rita)
    ask(request_, gate.tom)
    reply(gate, request_, round_=1)
    ask(request_, gate.rita)
    assert Message.objects.filter(kind="question").count() == 3


def test_rounds_are_capped_for_each_side(
    gate: Gate, request_: ApprovalRequest, settings: Any
) -> None:
    few = settings.COUNTERSEAL.model_copy(update={"dialogue_rounds": 2})
    settings.COUNTERSEAL = few
    ask(request_, gate.rita)
    send_back(request_, gate.tom)
    with pytest.raises(errors.RoundsUsed, match="All 2 rounds"):
        ask(request_, gate.sue)
    reply(gate, request_, kind=QUESTION)
    reply(gate, request_, kind=QUESTION)
    with pytest.raises(errors.RoundsUsed):
        reply(gate, request_, kind=QUESTION)
    assert [one.round for one in Message.objects.order_by("pk")] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_a_message_has_a_text(gate: Gate, request_: ApprovalRequest, text: str) -> None:
    for act in (ask, send_back):
        with pytest.raises(errors.TextMissing):
            act(request_, gate.rita, text)
    assert not Message.objects.exists()


def test_a_text_that_is_too_long_is_refused(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita, "a" * messages.TEXT_LENGTH)
    with pytest.raises(errors.InvalidInput) as caught:
        ask(request_, gate.tom, "a" * (messages.TEXT_LENGTH + 1))
    (error,) = caught.value.errors
    assert error["path"] == "text"
    assert "at most 2000 characters: 2001 were given" in error["message"]


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_may_not_decide_may_not_ask(
    gate: Gate, request_: ApprovalRequest, name: str
) -> None:
    for act in (ask, send_back):
        with pytest.raises(errors.NotPermitted):
            act(request_, gate.people[name])


def test_admission_is_read_after_the_lock(
    gate: Gate, request_: ApprovalRequest
) -> None:
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    with pytest.raises(errors.NotPermitted):
        ask(request_, gate.rita)


def test_a_question_is_about_the_version_that_was_read(
    gate: Gate, request_: ApprovalRequest
) -> None:
    factories.revise(gate.agent, request_.proposal)
    with pytest.raises(errors.StaleVersion) as caught:
        ask(request_, gate.rita, version=1)
    assert caught.value.facts == {"current_version": 2}
    ask(request_, gate.rita, version=2)


def test_nobody_asks_while_another_holds_it(
    gate: Gate, request_: ApprovalRequest
) -> None:
    take.take_hold(request_id=request_.pk, person=gate.tom)
    with pytest.raises(errors.HeldByAnother, match="Your message was not sent"):
        ask(request_, gate.rita)
    ask(request_, gate.tom)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("recallable", errors.AlreadyDecided),
        ("authorized", errors.AlreadyDecided),
        ("rejected", errors.AlreadyDecided),
        ("expired", errors.RequestExpired),
        ("withdrawn", errors.RequestWithdrawn),
        ("superseded", errors.RequestWithdrawn),
    ],
)
def test_nobody_asks_about_what_is_decided(
    gate: Gate, status: str, error: type[errors.DomainError]
) -> None:
    request = states.REQUESTS[status](gate)
    request.refresh_from_db()
    for act in (ask, send_back):
        with pytest.raises(error):
            act(request, gate.tom)
    assert not Message.objects.exists()


def test_a_question_after_the_deadline_is_refused(
    gate: Gate, request_: ApprovalRequest
) -> None:
    factories.overdue(request_)
    with pytest.raises(errors.RequestExpired):
        ask(request_, gate.rita)


def test_a_stop_ends_the_dialogue_and_a_pause_does_not(
    gate: Gate, request_: ApprovalRequest
) -> None:
    key: Any = {
        "scope": Scope.AGENT,
        "key": "riley",
        "person": gate.sue,
        "reason": "odd",
    }
    stops.create_stop(mode=StopMode.PAUSED, **key)
    ask(request_, gate.rita)
    reply(gate, request_)
    stops.create_stop(mode=StopMode.STOPPED, **key)
    with pytest.raises(errors.RequestWithdrawn, match="Your message was not sent"):
        ask(request_, gate.rita)
    with pytest.raises(errors.AgentStopped):
        reply(gate, request_, kind=QUESTION)


def test_a_request_that_was_sent_back_waits_for_its_agent(
    gate: Gate, request_: ApprovalRequest
) -> None:
    take.take_hold(request_id=request_.pk, person=gate.rita)
    send_back(request_, gate.rita, "Halve it.")
    found = now_of(request_)
    assert found.with_agent_since == Message.objects.get().at
    assert Hold.objects.get().holder is None
    said: Any = shown(request_)
    assert (said["status"], said["returned"]) == ("pending", True)
    assert said["messages"][0]["kind"] == "guidance"
    with pytest.raises(errors.AlreadySentBack):
        send_back(request_, gate.tom)


def test_a_revision_ends_the_return(gate: Gate, request_: ApprovalRequest) -> None:
    send_back(request_, gate.rita)
    factories.revise(gate.agent, request_.proposal, amount="20.00")
    assert now_of(request_).with_agent_since is None
    assert shown(request_)["returned"] is False
    send_back(now_of(request_), gate.rita)  # of the new version


def test_what_is_with_its_agent_expires_as_always(
    gate: Gate, request_: ApprovalRequest
) -> None:
    send_back(request_, gate.rita)
    factories.overdue(request_)
    deadlines.expire_chunk()
    found = now_of(request_)
    assert found.status == RequestStatus.EXPIRED
    assert (found.with_agent_since, shown(request_)["returned"]) == (None, False)


def test_the_agent_may_answer_a_return_in_words(
    gate: Gate, request_: ApprovalRequest
) -> None:
    send_back(request_, gate.rita)
    with pytest.raises(errors.NoOpenQuestion):
        reply(gate, request_)  # only a question is answered without its round
    reply(gate, request_, "It cannot be halved.", round_=1)
    assert shown(request_)["returned"] is True


def test_an_answer_names_its_round_when_several_are_open(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    ask(request_, gate.tom)
    with pytest.raises(errors.InvalidInput) as caught:
        reply(gate, request_)
    (error,) = caught.value.errors
    assert (error["path"], "use one of 1, 2" in error["message"]) == ("round", True)
    reply(gate, request_, round_=2)
    reply(gate, request_)
    with pytest.raises(errors.NoOpenQuestion):
        reply(gate, request_)


def test_an_answer_still_comes_while_an_approval_can_be_recalled(gate: Gate) -> None:
    states.recall_windows(gate)
    request: ApprovalRequest = propose(gate.agent).request
    ask(request, gate.tom)
    decide(request, gate.rita)
    reply(gate, request)
    assert now_of(request).status == RequestStatus.RECALLABLE
    with pytest.raises(errors.AlreadyDecided):
        reply(gate, request, kind=QUESTION)


def test_a_person_answers_the_agent(gate: Gate, request_: ApprovalRequest) -> None:
    reply(gate, request_, "Card or voucher?", kind=QUESTION)
    with pytest.raises(errors.NoOpenQuestion):
        messages.answer_question(
            request_id=request_.pk, person=gate.rita, version=1, text="Card", round_=2
        )
    messages.answer_question(
        request_id=request_.pk, person=gate.rita, version=1, text="Card"
    )
    said: Any = shown(request_)["messages"]
    assert [(one["from"], one["kind"], one["round"]) for one in said] == [
        ("agent", "question", 1),
        ("reviewer", "answer", 1),
    ]


def test_guidance_of_an_escalation_counts_in_the_numbering(gate: Gate) -> None:
    request: ApprovalRequest = propose(gate.agent).request
    ask(request, gate.tom)
    decide(request, gate.rita, "escalate")
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sue, guidance="Look at the photo."
    )
    ask(now_of(request), gate.rita)
    said: Any = shown(request)["messages"]
    assert [(one["from"], one["kind"], one["round"]) for one in said] == [
        ("reviewer", "question", 1),
        ("supervisor", "guidance", 2),
        ("reviewer", "question", 3),
    ]


def test_only_who_asked_is_told_of_the_answer(
    gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    reply(gate, request_)
    (told,) = OutboxMessage.objects.filter(topic="request.answered")
    assert told.facts == {"person": gate.rita.public_id}


def test_no_agent_is_asked_about_what_a_person_proposed(gate: Gate) -> None:
    request: ApprovalRequest = propose(gate.agent).request
    worlds.rewrite(type(request.proposal), request.proposal_id, source="reversal")
    with pytest.raises(errors.Conflict, match="A person proposed this"):
        ask(request, gate.rita)
