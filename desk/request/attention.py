"""The attention check and the written question that an approval must answer.

An attention check only delays: the second answer is accepted, right or wrong, and a
wrong one is flagged. A written answer is refused until it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.sessions.backends.base import SessionBase

from journal.errors import AttentionCheckFailed, DomainError
from reviews.attention_checks.questions import AttentionQuestion
from reviews.attention_checks.written_questions import (
    LONGEST_WRITTEN,
    SHORTEST_WRITTEN,
    WrittenQuestion,
)
from reviews.choices import VERDICT_SPECS, Verdict

from ..components import choice
from ..components.regions import Regions
from .load import LoadedRequest

MISSED = "check_missed"  # the flag of a decision that insisted after a wrong answer
_SESSION_KEY = "answers"  # session key: the answers so far, by request version
_MOST_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class AttentionCheck:
    """An attention check as a panel shows it; `answers` were given on earlier tries."""

    question: AttentionQuestion
    answers: tuple[int, ...] = ()

    def build_record(self, answer: int | None) -> dict[str, Any]:
        """What the decision keeps of it."""
        given = [*self.answers, *([] if answer is None else [answer])]
        right = self.question.right
        return {"question": self.question.id, "answers": given, "right": right}

    def is_missed(self, answer: int | None) -> bool:
        """Whether the person insisted on the decision after a wrong answer."""
        if answer is None:
            return False
        return not all(map(self.question.is_right, (*self.answers, answer)))

    def find_refusal(self, answer: int | None) -> DomainError | None:
        """The refusal of a first answer that is missing or wrong."""
        if self.answers:
            return None  # the second answer is accepted, right or wrong
        if answer is None:
            return AttentionCheckFailed(
                "Answer the attention check first. Nothing was recorded."
            )
        if self.question.is_right(answer):
            return None
        return AttentionCheckFailed(
            "Attention check failed: that is not what this request does. Nothing was "
            f"recorded. Check: {self.question.look}."
        )


@dataclass(frozen=True, slots=True)
class WrittenCheck:
    """A written question as a panel shows it, with what was typed into it."""

    question: WrittenQuestion
    answer: str = ""

    def build_record(self) -> dict[str, Any]:
        """What the decision keeps of it."""
        return {
            "question": self.question.id,
            "asked": f"{self.question.finding}. {self.question.text}",
            "written": self.answer,
            "checked": bool(self.question.right),
        }

    def find_refusal(self) -> DomainError | None:
        """A refusal until the answer is right, or long enough where nothing can check
        it: unlike an attention check, it does not give way at the second try."""
        if self.question.is_right(self.answer):  # guard: written-right
            return None
        if not self.answer:
            return AttentionCheckFailed(
                "Write your answer first. Nothing was recorded."
            )
        if self.question.right:
            return AttentionCheckFailed(
                "That is not what this request says. Nothing was recorded. Check:"
                f" {self.question.look}."
            )
        return AttentionCheckFailed(
            f"Write at least {SHORTEST_WRITTEN} characters. Nothing was recorded."
        )


@dataclass(frozen=True, slots=True)
class SentAnswers:
    """What this person answered: in the form just sent, and on earlier tries."""

    form: Mapping[str, str] = field(default_factory=dict)
    session: SessionBase = field(default_factory=SessionBase)

    def choose(self, check: AttentionCheck | None, verdict: Verdict) -> int | None:
        """The chosen answer; None for none, and for one to the question about an
        earlier edit."""
        sent = self.form.get("answer", "")
        if check is None or not sent.isdecimal() or len(sent) > 2:
            return None
        answered = self.form.get("question", "")
        if verdict is Verdict.MODIFY and answered != check.question.digest:
            return None
        answer = int(sent)
        return answer if answer < len(check.question.options) else None

    def find_written_check(
        self, regions: Regions, verdict: Verdict
    ) -> WrittenCheck | None:
        """The written question of this version with the answer that was sent; None for
        a verdict that lets nothing happen, and where the policy asks none."""
        if not VERDICT_SPECS[verdict].commits:
            return None
        question = choice.find_written_question(regions)
        if question is None:
            return None
        answer = self.form.get("written", "").replace("\r\n", "\n").strip()
        return WrittenCheck(question, answer[:LONGEST_WRITTEN])


def find_attention_check(
    session: SessionBase,
    loaded: LoadedRequest,
    regions: Regions,
    verdict: Verdict,
    opened: datetime,
) -> AttentionCheck | None:
    """The attention check of this person and version; None where the policy asks none.

    Only for verdicts that let something happen. `opened` is when the person opened the
    page: decisions they make elsewhere in the meantime add no question.
    """
    if not VERDICT_SPECS[verdict].commits:
        return None
    question = choice.find_attention_question(regions, opened)
    if question is None:
        return None
    key = _format_answers_key(loaded, regions, question)
    return AttentionCheck(question, _read_answers(session).get(key, ()))


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What a page asked, how it was answered, and the refusal of a wrong answer."""

    check: AttentionCheck | None
    record: Mapping[str, Any]
    flags: Sequence[str]
    refusal: DomainError | None


def collect_answers(
    answers: SentAnswers,
    loaded: LoadedRequest,
    regions: Regions,
    verdict: Verdict,
    opened: datetime,
) -> GivenAnswers:
    """Compare what was answered with what the version of `regions` asks."""
    check = find_attention_check(answers.session, loaded, regions, verdict, opened)
    record, flags, refusal = dict[str, Any](), [], None
    if check is not None:
        answer = answers.choose(check, verdict)
        record, refusal = check.build_record(answer), check.find_refusal(answer)
        flags = [MISSED] if check.is_missed(answer) else []
    written = answers.find_written_check(regions, verdict)
    if written is not None:
        record, refusal = written.build_record(), refusal or written.find_refusal()
    return GivenAnswers(check, record, flags, refusal)


def record_answers(
    session: SessionBase,
    loaded: LoadedRequest,
    given: Sequence[int],
    asked: tuple[Regions, AttentionCheck | None] | None,
) -> None:
    """Store the answers in the session: a first wrong answer counts even after a
    reload. `asked` is what was asked about an edit."""
    regions, check = asked or (None, None)
    answers = _read_answers(session)
    key = _format_answers_key(loaded, regions, check.question if check else None)
    answers[key] = tuple(given)
    session[_SESSION_KEY] = dict(list(answers.items())[-_MOST_REMEMBERED:])


def forget_answers(session: SessionBase, loaded: LoadedRequest) -> None:
    """Drop the answers once the decision is made."""
    prefix = f"{loaded.request.pk}:"
    answers = _read_answers(session)
    rest = {key: given for key, given in answers.items() if not key.startswith(prefix)}
    if rest != answers:
        session[_SESSION_KEY] = rest


def _format_answers_key(
    loaded: LoadedRequest, regions: Regions | None, question: AttentionQuestion | None
) -> str:
    """The key of the answers to the question about a version. The question about an
    edit is another one for each edit."""
    number = regions.sealed.number if regions else loaded.request.version
    key = f"{loaded.request.pk}:{number}"
    if number == loaded.request.version or question is None:
        return key
    return f"{key}:{question.digest}"


def _read_answers(session: SessionBase) -> dict[str, tuple[int, ...]]:
    stored: Mapping[str, Sequence[int]] = session.get(_SESSION_KEY, {})
    return {key: tuple(given) for key, given in stored.items()}
