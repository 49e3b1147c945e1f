"""Messages between the people who may decide a request and the agent that proposed it.

A message is no verdict: the request stays open, its votes count and its deadline
stands. People ask, answer, or send the request back for revision; each is an operation.
The agent's messages are steps of an operation of `agents`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from journal import log, outbox, restore_epochs, writes
from journal.clock import format_time
from journal.errors import (
    AlreadyDecided,
    AlreadySentBack,
    Conflict,
    HeldByAnother,
    InvalidInput,
    NoOpenQuestion,
    QuestionUnanswered,
    RequestExpired,
    RequestWithdrawn,
    StaleVersion,
    TextMissing,
    build_field_error,
)
from journal.operations import operation
from policies.choices import Role
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import (
    RETRACTED,
    REVERSAL_SOURCE,
    CanaryEnding,
    MessageKind,
    RequestStatus,
    StopMode,
)
from reviews.grants import uncertain
from reviews.holds import rows as hold_rows
from reviews.models import ApprovalRequest, Message
from reviews.redaction.redactor import load_redactor_of
from reviews.stops import gate_state, incidents
from reviews.stops.stops import build_action_key

from .. import canary_verdicts
from .rounds import Dialogue, check_rounds_left, load_dialogue

TEXT_LENGTH = 2000  # characters of one message


class _Sender(NamedTuple):
    """A person who may write to the agent now, and what has been said so far."""

    request: ApprovalRequest  # locked
    person: Person  # with the roles of this moment
    role: Role
    dialogue: Dialogue
    now: datetime


@operation(
    locks="request, Hold",
    writes="ApprovalRequest; Message, or Canary and Hold",
    logs="request.asked; or canary.revealed, hold.released",
    after="webhook, wake-up",
)
def ask_agent(
    *, request_id: str, person: Person, version: int, text: str
) -> Message | None:
    """Ask the agent a question about a version of its request. A canary has no agent:
    it ends, and nothing is sent.

    Raises NotFound, TextMissing, InvalidInput for a text that is too long, and under
    the lock NotPermitted, AlreadyEscalated, AlreadyDecided, RequestExpired,
    RequestWithdrawn, StaleVersion, HeldByAnother, Conflict for a proposal that a person
    made, RoundsUsed, QuestionUnanswered while the person's last question is unanswered.
    """
    text = _check_text(text)
    sender = _lock_for_person(request_id, person, version)
    if sender.request.canary:
        _end_canary(sender)
        return None
    check_rounds_left(sender.dialogue, by_agent=False)
    questions = sender.dialogue.list_questions(by_agent=False)
    # guard: one-question
    if any(question.author_id == person.pk for question in questions):
        raise QuestionUnanswered
    round_ = sender.dialogue.next_round
    return _write_message(sender, "ask", MessageKind.QUESTION, round_, text)


@operation(
    locks="request, Hold",
    writes="Message, ApprovalRequest",
    logs="request.answered",
    after="webhook, wake-up",
)
def answer_question(
    *, request_id: str, person: Person, version: int, text: str, round_: int = 0
) -> Message:
    """Answer a question of the agent: that of `round_`, or the oldest unanswered one.
    Raises what `ask_agent` raises but for the limits of rounds, and NoOpenQuestion."""
    text = _check_text(text)
    sender = _lock_for_person(request_id, person, version)
    question = _find_question(sender.dialogue, round_)
    return _write_message(sender, "answer", MessageKind.ANSWER, question.round, text)


@operation(
    locks="request, Hold",
    writes="ApprovalRequest, Hold; Message or Canary",
    logs="request.sent_back or canary.revealed; hold.released",
    after="mail, webhook, wake-up",
)
def send_back(
    *, request_id: str, person: Person, version: int, text: str
) -> Message | None:
    """Send a request back to the agent for revision, with guidance. A canary has no
    agent: it ends, and nothing is sent. The request stays pending and its deadline
    stands. It counts as returned until it has a new revision; others may decide it
    meanwhile. The person's hold ends. Raises what `ask_agent` raises but for
    QuestionUnanswered, and AlreadySentBack."""
    text = _check_text(text)
    sender = _lock_for_person(request_id, person, version)
    if sender.request.canary:
        _end_canary(sender)
        return None
    since = sender.request.returned_at
    if since is not None:
        raise AlreadySentBack(
            f"This has been with the agent since {format_time(since)}. Nothing was "
            "sent. Wait for the revision, or decide."
        )
    check_rounds_left(sender.dialogue, by_agent=False)
    message = _write_message(
        sender,
        "send_back",
        MessageKind.GUIDANCE,
        sender.dialogue.next_round,
        text,
        changes={"returned_at": sender.now},
    )
    hold_rows.free_hold_of_person(sender.request, sender.person, sender.now)
    return message


def _end_canary(sender: _Sender) -> None:
    """End a canary whose reviewer wrote to its agent instead of deciding it."""
    canary_verdicts.end_canary(
        sender.request,
        CanaryEnding.ASKED,
        actor=build_actor(sender.person),
        now=sender.now,
    )
    hold_rows.free_hold_of_person(sender.request, sender.person, sender.now)


def _check_text(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise TextMissing("Enter a text first. Nothing was sent.")
    if len(text) > TEXT_LENGTH:
        rule = f"at most {TEXT_LENGTH} characters: {len(text)} were given; shorten it"
        raise InvalidInput(errors=[build_field_error("text", rule)])
    return text


def _lock_for_person(request_id: str, person: Person, version: int) -> _Sender:
    """Lock the request and check that this person may write about this version now."""
    request = locks.lock_request_or_canary(request_id)
    state = gate_state.load_state(build_action_key(request.proposal))
    restore_epochs.check_not_restored(state.halted)
    incidents.catch_up_deadline(request, state.now)
    _check_waiting(request, state.now)
    if state.mode is StopMode.STOPPED:  # guard: message-stop
        raise RequestWithdrawn("This was stopped. Your message was not sent.")
    if version != request.version:  # guard: message-version
        raise StaleVersion(
            "The request changed while you were reading. Nothing was sent. Review the "
            "new version.",
            current_version=request.version,
        )
    # Their role may have been revoked during the wait for the lock.
    person = permissions.load_deciders([person.pk])[person.pk].person
    role = permissions.check_can_decide(person, request, request.sealed)
    _check_not_held(request, person, state.now)
    if request.proposal.source == REVERSAL_SOURCE:
        raise Conflict(
            "A person proposed this, so no agent can answer. Nothing was sent. Ask the "
            "person, or decide."
        )
    return _Sender(request, person, role, load_dialogue(request), state.now)


def _check_waiting(request: ApprovalRequest, now: datetime) -> None:
    """Raises RequestExpired, RequestWithdrawn or AlreadyDecided unless people are still
    asked."""
    status = RequestStatus(request.status)
    overdue = status is RequestStatus.PENDING and request.expires_at <= now
    if overdue or status is RequestStatus.EXPIRED:
        raise RequestExpired(
            f"This expired at {format_time(request.expires_at)}. Your message was not "
            f"sent. {uncertain.describe_effect(request)}"
        )
    if status in RETRACTED:
        raise RequestWithdrawn(
            "This was withdrawn. There is nothing to decide. Your message was not sent."
        )
    if status is not RequestStatus.PENDING:
        raise AlreadyDecided(
            "This has already been decided. Your message was not sent."
        )


def _check_not_held(request: ApprovalRequest, person: Person, now: datetime) -> None:
    """Raises HeldByAnother while somebody else holds the request."""
    hold = locks.lock_hold(request.pk)
    if hold is None or not hold_rows.is_held(hold, now):
        return
    if hold.holder_id != person.pk:
        raise HeldByAnother(
            f"{hold.holder} has claimed this until {format_time(hold.until)}. Your "
            "message was not sent. Your text is saved."
        )


def _find_question(dialogue: Dialogue, round_: int) -> Message:
    questions = dialogue.list_questions(by_agent=True)
    matches = [question for question in questions if round_ in {0, question.round}]
    if not matches:
        raise NoOpenQuestion
    return matches[0]


def _write_message(
    sender: _Sender,
    event: str,
    kind: MessageKind,
    round_: int,
    text: str,
    changes: dict[str, Any] | None = None,
) -> Message:
    message = Message(
        request=sender.request,
        version=sender.request.version,
        round=round_,
        kind=kind,
        author=sender.person,
        role=sender.role,
        text=text,
        at=sender.now,
    )
    _apply_event(sender.request, event, message, build_actor(sender.person), changes)
    return message


def _apply_event(
    request: ApprovalRequest,
    event: str,
    message: Message,
    actor: log.Actor,
    changes: dict[str, Any] | None = None,
) -> None:
    """Store the message with its log record and the event for the agent. The log has
    only an HMAC of the text."""
    request.message_round = message.round
    writes.insert_rows([message])
    changes = {**(changes or {}), "message_count": request.message_count + 1}
    transitions.request.apply(
        request,
        event,
        actor=actor,
        now=message.at,
        changes=changes,
        data={"round": message.round},
        private={"text": message.text},
    )


def record_agent_message(
    request: ApprovalRequest,
    kind: MessageKind,
    text: str,
    *,
    now: datetime,
    round_: int = 0,
) -> Message:
    """Record an answer or a question of the agent, redacted, and notify people.
    `round_` names what an answer answers; 0 means the only unanswered question. A step
    of the agents' operation, which holds the request's lock. Raises AlreadyDecided,
    RequestExpired, RequestWithdrawn, NoOpenQuestion, RoundsUsed, and InvalidInput when
    several questions are unanswered and `round_` is 0."""
    # For the agent, an approval that can still be recalled is pending: it may answer.
    if kind is not MessageKind.ANSWER or request.status != RequestStatus.RECALLABLE:
        _check_waiting(request, now)
    dialogue = load_dialogue(request)
    redactor = load_redactor_of(request.proposal, request.sealed.revision)
    message = Message(
        request=request,
        version=request.version,
        kind=kind,
        text=redactor.text(text.strip()),
        at=now,
    )
    actor = log.Actor("agent", request.proposal.agent)
    if kind is MessageKind.ANSWER:
        question = _find_asked(dialogue, round_)
        message.round = question.round
        _apply_event(request, "answer_people", message, actor)
        if question.author is not None:
            asker = question.author.public_id
            outbox.publish("request.answered", request.pk, person=asker)
        return message
    check_rounds_left(dialogue, by_agent=True)
    message.round = dialogue.next_round
    _apply_event(request, "ask_people", message, actor)
    outbox.publish("request.asked", request.pk)
    return message


def _find_asked(dialogue: Dialogue, round_: int) -> Message:
    """What the agent answers: a question of a person, or the guidance of the person who
    sent the request back."""
    if round_:
        opener = dialogue.find_unanswered(round_, by_agent=False)
        if opener is None:
            raise NoOpenQuestion
        return opener
    questions = dialogue.list_questions(by_agent=False)
    if not questions:
        raise NoOpenQuestion
    if len(questions) > 1:
        rounds = ", ".join(str(question.round) for question in questions)
        rule = f"required while several questions are unanswered; use one of {rounds}"
        raise InvalidInput(errors=[build_field_error("round", rule)])
    return questions[0]
