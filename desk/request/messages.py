"""Messages between people and the agent: their buttons and panel, and sending one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journal.clock import format_time
from journal.errors import DigestMissing, DomainError
from reviews.choices import Verdict
from reviews.decisions import drafts
from reviews.dialogue import messages as dialogue_messages
from reviews.models import Draft, Message

from ..components.choice import VERDICT_WORDINGS
from ..forms import MessageForm, name_message_draft
from .load import LoadedRequest

MESSAGE_CODES = {
    "reason",
    "invalid",
    "rounds",
    "returned",
    "unanswered",
    "no_question",
    "conflict",
}  # errors that the panel shows


@dataclass(frozen=True, slots=True)
class PanelButton:
    """A button that opens a panel, with its shortcut."""

    name: str  # of the panel
    label: str
    key: str


ASK = PanelButton("ask", "Ask…", "Q")
ANSWER = PanelButton("ask", "Answer…", "Q")
SEND_BACK = PanelButton("send_back", "Send back…", "B")
DECIDES_NOTHING = "This decides nothing, and the deadline stands."


def list_message_buttons(loaded: LoadedRequest) -> tuple[PanelButton, ...]:
    """Ask, which is Answer while a question of the agent is unanswered, and Send back
    until the agent has it."""
    asked = loaded.dialogue.list_questions(by_agent=True)
    back = () if loaded.request.with_agent_since else (SEND_BACK,)
    return (ANSWER if asked else ASK, *back)


# Its heading, its button, and what it does in one line.
_WORDINGS = {
    "ask": (
        "Ask the agent",
        "Send the question",
        "The answer appears on this page, and you are notified.",
    ),
    "send_back": (
        "Send back for revision",
        "Send back",
        "The agent revises or withdraws it. Others can decide it meanwhile.",
    ),
    "answer": (
        "Answer the agent",
        "Send the answer",
        "The agent and everybody who can see this request can read your answer.",
    ),
}


def name_draft(loaded: LoadedRequest, arm: str) -> str:
    """The name by which the draft of the panel that `arm` opens is stored."""
    if arm != "ask":
        return arm
    asked = loaded.dialogue.list_questions(by_agent=True)
    return name_message_draft(arm, asked[0].round if asked else None)


def describe_draft(panel: str) -> str:
    """The heading of the panel that a draft was typed into; empty if it names none."""
    if panel in set(Verdict):
        return VERDICT_WORDINGS[Verdict(panel)].heading
    heading, *_ = _WORDINGS.get(panel.partition("-")[0], ("",))
    return heading


def describe_sent(loaded: LoadedRequest, name: str) -> str:
    """The confirmation of a message; `loaded` is the request before it was sent."""
    if name == "send_back":
        return (
            "Sent back. The agent has the request until it answers; you can still"
            " decide it."
        )
    if loaded.dialogue.list_questions(by_agent=True):
        return "Your answer is sent."
    return "Your question is sent. The answer appears on this page."


@dataclass(frozen=True, slots=True)
class MessagePanel:
    name: str
    heading: str
    line: str  # what it does, in one line
    commit: str
    note: str
    question: Message | None = None  # of the agent, which the text answers
    why_not: str = ""  # why nothing can be sent now
    problem: str = ""
    problem_code: str = ""

    @property
    def focus(self) -> str:
        return "#problem" if self.problem else "#panel"


def build_message_panel(
    loaded: LoadedRequest,
    name: str,
    *,
    data: Mapping[str, str] | None = None,
    error: DomainError | None = None,
    draft: Draft | None = None,
) -> MessagePanel:
    """The panel of a message. Ask becomes an answer while a question of the agent is
    unanswered. The other parameters are those of `build_panel`."""
    asked = loaded.dialogue.list_questions(by_agent=True)
    typed = data.get("reason", "") if data else draft.reason if draft else ""
    kind = "answer" if name == "ask" and asked else name
    heading, commit, line = _WORDINGS[kind]
    return MessagePanel(
        name=name,
        heading=heading,
        line=f"{line} {DECIDES_NOTHING}",
        commit=commit,
        note=typed,
        question=asked[0] if asked and name == "ask" else None,
        why_not="" if error else _find_message_refusal(loaded, name, bool(asked)),
        problem=_format_message_problem(error),
        problem_code=error.code if error else "",
    )


def _format_message_problem(error: DomainError | None) -> str:
    if error is None:
        return ""
    rules = [problem["message"] for problem in error.errors]
    return " ".join([error.detail, *(f"Text: {rule}." for rule in rules)])


def _find_message_refusal(loaded: LoadedRequest, name: str, answers: bool) -> str:
    """Why the operation would refuse this message now; "" if it would not."""
    dialogue = loaded.dialogue
    if name == "ask" and answers:
        return ""
    if not dialogue.count_rounds_left(by_agent=False):
        return "All rounds of this request are used. Decide it, or escalate it."
    since = loaded.request.with_agent_since
    if name == "send_back" and since is not None:
        return f"This has been with the agent since {format_time(since)}."
    questions = dialogue.list_questions(by_agent=False)
    if name == "ask" and any(
        question.author_id == loaded.person.pk for question in questions
    ):
        return "The agent has not answered your last question yet."
    return ""


def keeps_message_panel(loaded: LoadedRequest, error: DomainError) -> bool:
    """Whether the person can correct the error in the panel, or read there why not."""
    return loaded.able and error.code in MESSAGE_CODES


def commit_message(loaded: LoadedRequest, form: MessageForm) -> None:
    """Send the message of a panel, and drop its draft. Raises what the operations of
    `reviews.dialogue.messages` raise, and DigestMissing for a form without version or
    panel."""
    if not form.is_valid():
        raise DigestMissing
    sent = form.cleaned_data
    message: dict[str, Any] = {
        "request_id": loaded.request.pk,
        "person": loaded.person,
        "version": sent["version"],
        "text": sent["reason"],
    }
    if form.meant == "send_back":
        dialogue_messages.send_back(**message)
    elif sent["round"]:
        dialogue_messages.answer_question(**message, round_=sent["round"])
    else:
        dialogue_messages.ask_agent(**message)
    drafts.discard_drafts(
        person=loaded.person,
        request_id=loaded.request.pk,
        panel=name_message_draft(form.meant, sent["round"]),
    )
