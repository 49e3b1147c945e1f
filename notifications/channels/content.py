"""What a message says: our own facts and a link. It contains no agent text, no
sensitive value and no button that decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from journal import clock
from reviews.alarms import wording
from reviews.effects import describe
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    NotificationDrill,
    Question,
    Revision,
)
from reviews.presenters.shapes import SentencePart
from reviews.questions import addressees
from reviews.quorum import StepData

from .contract import MessageLine, MessageRemainder

PLAIN_VALUE = re.compile(r"[A-Za-z0-9_-]{1,24}|-?[0-9][0-9.,]{0,20}")
LEFT_OUT = "[…]"
QUESTION_EFFECT = (
    "An agent asks people a question with a form. An answer authorizes nothing. Follow"
    " the link to read the question and answer it."
)
TEST_SUBJECT = "Test email from Counterseal"
DRILL_EFFECT = (
    "This is a drill: no request waits. Follow the link to show that this message"
    " reached you."
)


_LINK_LABELS: dict[type[object], str] = {Question: "Read and answer"}


@dataclass(frozen=True, slots=True)
class MessageSummary:
    """A message line for channels without a template of their own: plain text, which
    the channel must escape."""

    title: str  # what happened: `Approval needed`
    subject: str  # the line in a few words
    effect: str  # the effect sentence, or what an alarm means
    rows: Sequence[tuple[str, str]]  # label and value
    link: str
    link_label: str


def summarize_line(line: MessageLine) -> MessageSummary:
    facts, about = build_facts(line), line.about
    rows = [("Tool", str(facts["tool"]))] if facts["tool"] else []
    effect = str(facts.get("effect", ""))
    if isinstance(about, Alarm):
        effect = f"{facts['title']}. {facts['means']}"
    elif isinstance(about, NotificationDrill):
        rows = [("Queue", about.queue.title)]
    elif isinstance(about, Question):
        rows = [("Agent", about.agent), *_build_question_rows(about)]
    elif isinstance(about, Execution):
        rows += [("Execution", about.pk), ("Result", about.status)]
    else:
        warnings = [("Warnings", ". ".join(_list_warnings(about)))]
        rows = (warnings if warnings[0][1] else []) + rows
        rows += [("Risk", about.risk), ("Approval", str(facts["approvers"]))]
        rows += [("Queue", about.queue.title)]
        rows += [("Expires", str(facts["deadline"]))] if line.waits else []
    return MessageSummary(
        title=line.what,
        subject=format_subject(line),
        effect=effect,
        rows=rows,
        link=str(facts["link"]),
        link_label=_LINK_LABELS.get(type(about), "Read and decide")
        if line.waits
        else "Read",
    )


def build_facts(line: MessageLine) -> dict[str, object]:
    """The values that a template may print: our own facts and a link."""
    about = line.about
    if isinstance(about, Alarm):
        return _build_alarm_facts(about, line.what)
    if isinstance(about, NotificationDrill):
        return _build_drill_facts(about, line)
    if isinstance(about, Question):
        return _build_question_facts(about, line.what)
    proposal = about.proposal
    facts: dict[str, object] = {"what": line.what, "tool": proposal.tool_name}
    if isinstance(about, Execution):
        run = f"/threads/{proposal.agent}/{proposal.thread}/"
        return {**facts, "execution": about, "link": build_link(run)}
    return {
        **facts,
        "request": about,
        "waits": line.waits,
        "deadline": format_minute(about.expires_at),
        "approvers": format_approvers(about.sealed.steps),
        "warnings": _list_warnings(about),
        "effect": format_plain_effect(
            describe.build_effect_sentence(_load_revision(about))
        ),
        "rules": about.sealed.rules,
        "link": build_link(f"/requests/{about.pk}/"),
    }


def _build_alarm_facts(alarm: Alarm, what: str) -> dict[str, object]:
    words = wording.describe_alarm(alarm.kind)
    return {
        "what": what,
        "tool": alarm.proposal.tool_name if alarm.proposal else "",
        "alarm": alarm,
        "title": words.title,
        "means": words.means,
        "do": words.do,
        "link": build_link(f"/alarms/{alarm.pk}/"),
    }


def _build_drill_facts(
    drill: NotificationDrill, line: MessageLine
) -> dict[str, object]:
    """The link names the channel, so that the drill's page can tell by which of
    several messages its reader came."""
    return {
        "what": line.what,
        "tool": "",
        "drill": drill,
        "effect": DRILL_EFFECT,
        "ends": format_minute(drill.ends_at),
        "link": build_link(f"/drills/{drill.pk}/?by={line.channel}"),
    }


def _build_question_facts(question: Question, what: str) -> dict[str, object]:
    """Without the question's text, which an agent wrote."""
    return {
        "what": what,
        "tool": "",
        "question": question,
        "waits": True,
        "to": addressees.format_addressee(question),
        "effect": QUESTION_EFFECT,
        "deadline": format_minute(question.expires_at),
        "link": build_link(f"/questions/{question.pk}/"),
    }


def _build_question_rows(question: Question) -> Sequence[tuple[str, str]]:
    asked = addressees.format_addressee(question)
    return [("Asks", asked), ("Expires", format_minute(question.expires_at))]


def build_link(path: str) -> str:
    return f"{settings.COUNTERSEAL.base_url}{path}"


def format_subject(line: MessageLine) -> str:
    """The line in a few words: what happened, to what, and by when to decide."""
    about = line.about
    if isinstance(about, Alarm):
        return f"{line.what}: {wording.describe_alarm(about.kind).title}"
    if isinstance(about, NotificationDrill):
        return f"{line.what}: no request waits in {about.queue.title}"
    if isinstance(about, Question):
        by = format_minute(about.expires_at)
        return f"{line.what}: {about.agent} waits for an answer by {by}"
    tool = about.proposal.tool_name
    if isinstance(about, Execution):
        return f"{line.what}: {tool}"
    by = f", by {format_minute(about.expires_at)}" if line.waits else ""
    return f"{line.what}: {tool}, {about.risk} risk{by}"


def format_approvers(steps: Iterable[StepData]) -> str:
    """The people who must approve: `1 reviewer and 2 supervisors`."""
    return " and ".join(
        f"{step['required']} {step['role']}{'' if step['required'] == 1 else 's'}"
        for step in steps
    )


def _list_warnings(request: ApprovalRequest) -> tuple[str, ...]:
    """What the request's page warns of on top, in our own words."""
    return describe.load_brief(_load_revision(request)).warnings


def _load_revision(request: ApprovalRequest) -> Revision:
    revision = request.sealed.revision
    revision.proposal = request.proposal
    return revision


def format_plain_effect(parts: Iterable[SentencePart]) -> str:
    """The effect in our own words. Of the arguments, only numbers and one-word names
    are printed. The rest can be read only on the page: sensitive values, text of an
    agent, and anything that a mail program would turn into a link."""
    return "".join(part.text if _is_plain(part) else LEFT_OUT for part in parts)


def _is_plain(part: SentencePart) -> bool:
    own = not part.value or not getattr(part, "untrusted", True)
    return own or bool(PLAIN_VALUE.fullmatch(part.text))


def format_minute(at: datetime) -> str:
    return f"{clock.to_zone(at, UTC):%Y-%m-%d %H:%M} UTC"


def format_digest_subject(lines: Sequence[MessageLine], rest: MessageRemainder) -> str:
    """The first words of a digest: how many requests need a decision."""
    waiting, count = count_waiting(lines, rest), len(lines) + rest.count
    if waiting < count:
        return "1 notification" if count == 1 else f"{count} notifications"
    needed = "request needs" if count == 1 else "requests need"
    return f"{count} {needed} your decision"


def count_waiting(lines: Sequence[MessageLine], rest: MessageRemainder) -> int:
    """How many of the subjects of a digest wait for a decision."""
    return sum(line.waits for line in lines) + rest.waiting


def find_first_deadline(lines: Sequence[MessageLine]) -> str:
    """The nearest deadline of what waits; "" where none does."""
    deadlines = [
        line.about.expires_at
        for line in lines
        if line.waits and isinstance(line.about, ApprovalRequest | Question)
    ]
    return format_minute(min(deadlines)) if deadlines else ""
