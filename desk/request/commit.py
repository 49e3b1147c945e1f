"""From a submitted panel to one decision, and what the page asks for beside the
verdict.

A verdict on a page that has changed is refused, and so are too many approvals in a row.
The minimum reading time and the attention check only delay: the second try is accepted
and flagged. A written answer is refused until it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from journal.errors import (
    AttentionCheckFailed,
    DigestMissing,
    DomainError,
    InvalidArgs,
    InvalidInput,
    ReasonMissing,
    StaleVersion,
    TooFast,
    build_field_error,
)
from policies import active, tools
from policies.choices import Risk
from policies.documents import Desk
from reviews.attention_checks.questions import AttentionQuestion
from reviews.attention_checks.written_questions import (
    LONGEST_WRITTEN,
    SHORTEST_WRITTEN,
    WrittenQuestion,
)
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions import decide, drafts, submission
from reviews.decisions.submission import (
    PageEvidence,
    PageToken,
    StepUpProof,
    VerdictSubmission,
)
from reviews.dialogue import messages
from reviews.effects.wording import format_people
from reviews.governance import readings
from reviews.grants.grants import NO_CONDITIONS, ExpectedValue, GrantConditions
from reviews.models import RequestVersion

from .. import argument_form
from ..components import choice, page_evidence, throttle
from ..components.regions import Regions
from ..forms import DecisionForm, MessageForm, name_message_draft
from .load import LoadedRequest
from .page import ReviewPage

FAST, MISSED, NARROW = "fast", "check_missed", "narrow"
REMADE = "remade"
_ANSWERS_SESSION_KEY = "answers"  # session key: the answers so far, by request version
_MOST_REMEMBERED = 20
SEEN_HEADER = "X-Seen"


@dataclass(frozen=True, slots=True)
class AttentionCheck:
    """An attention check as a panel shows it; `answers` were given on earlier tries."""

    question: AttentionQuestion
    answers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenCheck:
    """A written question as a panel shows it, with what was typed into it."""

    question: WrittenQuestion
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ReadingTimeFloor:
    """The minimum reading time: until when a commit must be repeated, and its
    seconds."""

    until: datetime
    seconds: int


class CommitNotice:
    """What the page announces before the decision that it will ask for."""

    def __init__(self, session: SessionBase, page: ReviewPage) -> None:
        self._session = session
        self._page = page

    @cached_property
    def floor(self) -> ReadingTimeFloor | None:
        """None once the time is over, and for a reviewer who was warned already."""
        page = self._page
        seconds = _find_time_floor(page.loaded)
        until = _find_opening_time(page) + timedelta(seconds=seconds)
        warned = page.on_screen.warned if page.on_screen else ()
        if until <= page.loaded.now or FAST in {page.warned, *warned}:
            return None
        return ReadingTimeFloor(until, seconds)

    @cached_property
    def asks(self) -> bool:
        """Whether an approval comes with an attention check."""
        page = self._page
        given = page.loaded, page.regions, Verdict.APPROVE, _find_opening_time(page)
        return find_attention_check(self._session, *given) is not None

    @cached_property
    def written(self) -> WrittenQuestion | None:
        """The question that an approval must answer in writing."""
        return choice.find_written_question(self._page.regions)

    def ready(self) -> None:
        """Load them, so that rendering does not wait for a query."""
        _ = self.floor, self.asks, self.written


def adapt_page(request: HttpRequest, page: ReviewPage, *, partial: bool) -> None:
    """Adapt the page to what is on the screen already.

    Closes the panel if the screen shows another version, adds an attention check where
    one is due, and asks for no password that was given a moment ago.
    """
    page.partial, page.on_screen = partial, find_page_on_screen(request, page.loaded)
    page.notice = CommitNotice(request.session, page)
    if page.moved:
        page.writing, page.extending = None, False
    if page.armed is None:
        return
    if page.moved:
        page.armed = None
        return
    verdict = Verdict(page.armed.name)
    page.armed = replace(
        page.armed, proved=_has_recent_password(request, page.loaded, verdict)
    )
    if verdict is Verdict.MODIFY:
        ask_about_edit(request, page)
    else:
        _ask(request, page, page.regions, verdict)


def ask_about_edit(request: HttpRequest, page: ReviewPage) -> None:
    """Add to the panel what the version that the edit makes asks, once the preview
    knows that the editor's vote counts for it."""
    made = page.armed.check.made if page.armed and page.armed.check else None
    if made is not None:
        _ask(request, page, Regions(page.loaded.person, made), Verdict.MODIFY)


def _ask(
    request: HttpRequest, page: ReviewPage, regions: Regions, verdict: Verdict
) -> None:
    opened = _find_opening_time(page)
    question = find_attention_check(
        request.session, page.loaded, regions, verdict, opened
    )
    page.armed = replace(
        page.armed,
        asked=question,
        answered=_parse_answer(request, question, verdict),
        written=_find_written_check(request, regions, verdict),
    )


def _has_recent_password(
    request: HttpRequest, loaded: LoadedRequest, verdict: Verdict
) -> bool:
    said = VerdictSubmission(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=verdict,
        version=loaded.request.version,
        action_hash=loaded.request.action_hash,
    )
    return (
        submission.find_stored_proof(request.session, said.bound, loaded.now)
        is not None
    )


def find_page_on_screen(
    request: HttpRequest, loaded: LoadedRequest
) -> PageToken | None:
    """What this person's browser already shows of the request; None without a valid
    token of their own.

    A script sends the page token in the `SEEN_HEADER` header, a form in its
    `seen` field.
    """
    sent = request.POST.get("seen") or request.GET.get("seen") or ""
    found = submission.find_page_token(request.headers.get(SEEN_HEADER) or sent)
    # guard: own-screen
    if found is None or not found.is_for(loaded.person.public_id, loaded.request.pk):
        return None
    return found


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


class EditExamination:
    """What the page asks about the version that an edit makes: that version, and not
    the one on the screen, is what the editor's vote counts for."""

    def __init__(
        self,
        request: HttpRequest,
        loaded: LoadedRequest,
        page: PageToken,
        said: VerdictSubmission,
        evidence: PageEvidence,
    ) -> None:
        self._given = request, loaded, page, said
        self._evidence = evidence
        self.examined: PageEvidence | None = None
        self.asked: tuple[Regions, AttentionCheck | None] | None = None

    def examine(self, made: RequestVersion) -> PageEvidence:
        regions = Regions(self._given[1].person, made)
        given = _collect_answers(*self._given, regions)
        self.asked = regions, given.question
        self.examined = replace(
            self._evidence,
            check=given.record,
            flags=(*self._evidence.flags, *given.flags),
            deferred_refusal=self._evidence.deferred_refusal or given.refusal,
        )
        return self.examined


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What a page asked beside the verdict, how it was answered, and the refusal of a
    wrong answer or of a commit that came too soon."""

    question: AttentionCheck | None
    record: Mapping[str, Any]
    flags: Sequence[str]
    refusal: DomainError | None


def _collect_answers(
    request: HttpRequest,
    loaded: LoadedRequest,
    page: PageToken,
    said: VerdictSubmission,
    regions: Regions,
) -> GivenAnswers:
    question = find_attention_check(
        request.session, loaded, regions, said.verdict, page.rendered_at
    )
    answer = _parse_answer(request, question, said.verdict)
    written = _find_written_check(request, regions, said.verdict)
    return GivenAnswers(
        question,
        _build_written_record(written) or _build_check_record(question, answer),
        [MISSED] if _is_missed(question, answer) else [],
        _refuse_wrong_answer(question, answer)
        or _refuse_written_answer(written)
        or _refuse_too_fast(loaded, page, said, Risk(regions.sealed.risk))
        or _refuse_too_many(loaded, said),
    )


def attach_page_evidence(
    request: HttpRequest,
    loaded: LoadedRequest,
    said: VerdictSubmission,
    flags: Sequence[str] = (),
) -> VerdictSubmission:
    """The verdict with its page evidence, and with the refusal that the page deferred.
    An edit is asked about the version that it makes, which is not known yet.

    `flags` come before those of the page itself. Raises DigestMissing for a page
    without a valid token.
    """
    page = submission.parse_page_token(request.POST.get("seen", ""))
    # guard: own-page
    if not page.is_for(loaded.person.public_id, loaded.request.pk):
        raise DigestMissing
    regions = _build_regions(loaded, page)
    sight = page_evidence.render_regions(regions)
    fast = [FAST] if FAST in page.warned else []
    narrow = [NARROW] if request.POST.get(NARROW) else []
    evidence = PageEvidence(
        rendered=sight,
        took_ms=page.took_ms(loaded.now),
        flags=(*flags, *fast, *narrow),
        deferred_refusal=_refuse_changed_page(page, said, sight.digest),
    )
    if said.verdict is Verdict.MODIFY:
        edit = EditExamination(request, loaded, page, said, evidence)
        hasty = _refuse_too_fast(
            loaded, page, said, Risk(loaded.sealed.risk)
        ) or _refuse_too_many(loaded, said)
        refusal = evidence.deferred_refusal or hasty
        evidence = replace(evidence, edit=edit, deferred_refusal=refusal)
    else:
        given = _collect_answers(request, loaded, page, said, regions)
        evidence = replace(
            evidence,
            check=given.record,
            flags=(*flags, *fast, *given.flags, *narrow),
            deferred_refusal=evidence.deferred_refusal or given.refusal,
        )
    return replace(said, reading=page.reading or 0, page=evidence)


def record_answers(
    session: SessionBase, loaded: LoadedRequest, said: VerdictSubmission
) -> None:
    """Store the answers in the session: a first wrong answer counts even after a
    reload."""
    page = said.page
    edit = page.edit if page else None
    asked = edit.asked if isinstance(edit, EditExamination) else None
    kept = _read_answers(session)
    key = _format_answers_key(loaded, *(asked or (None, None)))
    kept[key] = tuple(page.answered.get("answers", ()) if page else ())
    session[_ANSWERS_SESSION_KEY] = dict(list(kept.items())[-_MOST_REMEMBERED:])


def forget_answers(session: SessionBase, loaded: LoadedRequest) -> None:
    """Drop the answers once the decision is made."""
    mine = f"{loaded.request.pk}:"
    kept = _read_answers(session)
    rest = {key: given for key, given in kept.items() if not key.startswith(mine)}
    if rest != kept:
        session[_ANSWERS_SESSION_KEY] = rest


def _load_desk_rules(loaded: LoadedRequest) -> Desk:
    """The desk rules of the policy that the version was sealed under, so that they do
    not change between two tries."""
    return active.load_document(loaded.sealed.policy).desk


def _find_time_floor(loaded: LoadedRequest, risk: Risk | None = None) -> int:
    """The minimum reading time of the version on the screen, or of a higher risk that
    an edit makes."""
    risks = {Risk(loaded.sealed.risk), risk or Risk(loaded.sealed.risk)}
    floors = _load_desk_rules(loaded).time_floor
    return max(floors.get(one, 0) for one in risks)


def _find_opening_time(page: ReviewPage) -> datetime:
    """When the page that the person has on the screen was made."""
    if page.partial:
        return page.on_screen.rendered_at if page.on_screen else page.loaded.now
    return page.seen.rendered_at


def _format_answers_key(
    loaded: LoadedRequest,
    regions: Regions | None = None,
    check: AttentionQuestion | AttentionCheck | None = None,
) -> str:
    """The key of the answers to the question about a version. The question about an
    edit is another one for each edit."""
    number = regions.sealed.number if regions else loaded.request.version
    key = f"{loaded.request.pk}:{number}"
    question = check.question if isinstance(check, AttentionCheck) else check
    if number == loaded.request.version or question is None:
        return key
    return f"{key}:{question.digest}"


def _read_answers(session: SessionBase) -> dict[str, tuple[int, ...]]:
    found: Mapping[str, Sequence[int]] = session.get(_ANSWERS_SESSION_KEY, {})
    return {key: tuple(given) for key, given in found.items()}


def _build_regions(loaded: LoadedRequest, page: PageToken) -> Regions:
    """The regions of the page that was shown, rendered from the database now."""
    return Regions(
        loaded.person,
        loaded.sealed,
        reading=page_evidence.find_reading(loaded.sealed, page.reading),
        since=page_evidence.find_version(page.request, page.since)
        if page.since
        else None,
    )


def _parse_answer(
    request: HttpRequest, question: AttentionCheck | None, verdict: Verdict
) -> int | None:
    """The chosen answer; None for none, and for one to the question about an earlier
    edit."""
    sent = request.POST.get("answer", "")
    if question is None or not sent.isdecimal() or len(sent) > 2:
        return None
    answered = request.POST.get("question", "")
    if verdict is Verdict.MODIFY and answered != question.question.digest:
        return None
    answer = int(sent)
    return answer if answer < len(question.question.options) else None


def _is_missed(question: AttentionCheck | None, answer: int | None) -> bool:
    """Whether the person insisted on the decision after a wrong answer."""
    if question is None or answer is None:
        return False
    given = [*question.answers, answer]
    return not all(question.question.is_right(one) for one in given)


def _build_check_record(
    question: AttentionCheck | None, answer: int | None
) -> dict[str, Any]:
    if question is None:
        return {}
    given = [*question.answers, *([] if answer is None else [answer])]
    return {
        "question": question.question.id,
        "answers": given,
        "right": question.question.right,
    }


def _refuse_changed_page(
    page: PageToken, said: VerdictSubmission, digest: str
) -> DomainError | None:
    """A refusal if the screen showed something other than what the verdict is about."""
    if (page.version, page.action_hash) != (said.version, said.action_hash):
        return StaleVersion()
    if page.digest == digest:
        return None
    detail = (
        "This page has changed since you opened it. Nothing was recorded. "
        "Read it again, then decide."
    )
    return StaleVersion(detail, remade=True)


def _find_written_check(
    request: HttpRequest, regions: Regions, verdict: Verdict
) -> WrittenCheck | None:
    """The written question of this version with the answer that was sent; None for a
    verdict that lets nothing happen, and where the policy asks none."""
    if not VERDICT_SPECS[verdict].commits:
        return None
    question = choice.find_written_question(regions)
    if question is None:
        return None
    answer = request.POST.get("written", "").replace("\r\n", "\n").strip()
    return WrittenCheck(question, answer[:LONGEST_WRITTEN])


def _build_written_record(check: WrittenCheck | None) -> dict[str, Any]:
    if check is None:
        return {}
    return {
        "question": check.question.id,
        "asked": f"{check.question.found}. {check.question.text}",
        "written": check.answer,
        "checked": bool(check.question.right),
    }


def _refuse_written_answer(check: WrittenCheck | None) -> DomainError | None:
    """A refusal until the answer is right, or long enough where nothing can check it:
    unlike an attention check, a written answer does not give way at the second try."""
    if check is None or check.question.is_right(check.answer):  # guard: written-right
        return None
    if not check.answer:
        return AttentionCheckFailed("Write your answer first. Nothing was recorded.")
    if check.question.right:
        return AttentionCheckFailed(
            "That is not what this request says. Nothing was recorded. Check:"
            f" {check.question.look}."
        )
    return AttentionCheckFailed(
        f"Write at least {SHORTEST_WRITTEN} characters. Nothing was recorded."
    )


def _refuse_wrong_answer(
    question: AttentionCheck | None, answer: int | None
) -> DomainError | None:
    if question is None or question.answers:
        return None  # the second answer is accepted, right or wrong
    if answer is None:
        return AttentionCheckFailed(
            "Answer the attention check first. Nothing was recorded."
        )
    if question.question.is_right(answer):
        return None
    return AttentionCheckFailed(
        "Attention check failed: that is not what this request does. Nothing was "
        f"recorded. Check: {question.question.look}."
    )


def _refuse_too_many(
    loaded: LoadedRequest, said: VerdictSubmission
) -> DomainError | None:
    if not said.commits:
        return None
    most = _load_desk_rules(loaded).most_decisions
    return throttle.find_rate_refusal(loaded.person, most=most, now=loaded.now)


def _refuse_too_fast(
    loaded: LoadedRequest, page: PageToken, said: VerdictSubmission, risk: Risk
) -> DomainError | None:
    if not said.commits or FAST in page.warned:
        return None
    took = (loaded.now - page.rendered_at).total_seconds()
    if took >= _find_time_floor(loaded, risk):
        return None
    return TooFast(
        f"You opened this {format_people(max(int(took), 0), 'second')} ago. Nothing "
        "was recorded. Check what changes, then confirm again."
    )


def commit_verdict(
    request: HttpRequest, loaded: LoadedRequest, form: DecisionForm
) -> None:
    """Submit the verdict.

    Raises what `decide_request` raises, DigestMissing for a form without version or
    action hash, ReasonMissing for another invalid field, InvalidArgs for an input of
    the wrong type.
    """
    _check_form(form)
    sent = form.cleaned_data
    said = VerdictSubmission(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=form.meant,
        version=sent["version"],
        action_hash=sent["action_hash"],
        reason_code=sent["reason_code"],
        reason=sent["reason"].replace("\r\n", "\n"),
        lease=request.POST.get("lease", "")[:40],
        pause=sent["pause"] and form.meant is Verdict.REJECT,
        conditions=_parse_conditions(request, loaded, form),
    )
    proof = _find_step_up_proof(request, said, sent["password"], loaded.now)
    said = replace(said, args=_parse_edited_args(loaded, form), step_up=proof)
    said = attach_page_evidence(request, loaded, said, _list_leaning_flags(form))
    try:
        decide.decide_request(said)
    except AttentionCheckFailed:
        record_answers(request.session, loaded, said)
        raise
    drafts.discard_drafts(person=said.person, request_id=said.request_id)
    submission.discard_proof(request.session)
    forget_answers(request.session, loaded)


def commit_message(loaded: LoadedRequest, form: MessageForm) -> None:
    """Send the message of a panel, and drop its draft. Raises what the operations of
    `reviews.dialogue.messages` raise, and DigestMissing for a form without version or
    panel."""
    if not form.is_valid():
        raise DigestMissing
    sent = form.cleaned_data
    said: dict[str, Any] = {
        "request_id": loaded.request.pk,
        "person": loaded.person,
        "version": sent["version"],
        "text": sent["reason"],
    }
    if form.meant == "send_back":
        messages.send_back(**said)
    elif sent["round"]:
        messages.answer_question(**said, round_=sent["round"])
    else:
        messages.ask_agent(**said)
    drafts.discard_drafts(
        person=loaded.person,
        request_id=loaded.request.pk,
        panel=name_message_draft(form.meant, sent["round"]),
    )


def _find_step_up_proof(
    request: HttpRequest, said: VerdictSubmission, password: str, now: datetime
) -> StepUpProof | None:
    """From the password just typed, or one typed for exactly this decision a moment
    ago: after another refusal it need not be typed again."""
    proof = submission.prove_identity(request, said.person, password, said.bound, now)
    if proof is None:
        return submission.find_stored_proof(request.session, said.bound, now)
    submission.store_proof(request.session, proof)
    return proof


def _list_leaning_flags(form: DecisionForm) -> tuple[str, ...]:
    """How the escalating reviewer would have decided, for a supervisor who asks."""
    said = form.cleaned_data["leaning"]
    return (f"leans_{said}",) if said and form.meant is Verdict.ESCALATE else ()


def _check_form(form: DecisionForm) -> None:
    if form.is_valid():
        return
    if {"verdict", "version", "action_hash"} & form.errors.keys():
        raise DigestMissing
    wrong = [name for name in ("not_before", "not_after") if name in form.errors]
    if wrong:
        raise InvalidInput(
            "The conditions need correction. Nothing was recorded.",
            errors=[
                build_field_error(f"conditions.{name}", str(form.errors[name][0]))
                for name in wrong
            ],
        )
    if "reason" in form.errors:
        raise ReasonMissing(f"{form.errors['reason'][0]} Nothing was recorded.")
    raise ReasonMissing


def _parse_conditions(
    request: HttpRequest, loaded: LoadedRequest, form: DecisionForm
) -> GrantConditions:
    """The conditions of an approval. An expected value is the one of the reading on the
    page; the decision itself refuses another reading."""
    if form.meant is not Verdict.APPROVE:
        return NO_CONDITIONS
    shown = readings.load_shown_reading(loaded.reading, loaded.revision)
    known = readings.list_plain_values(shown)
    return GrantConditions(
        form.cleaned_data["not_before"],
        form.cleaned_data["not_after"],
        tuple(
            ExpectedValue(name, known.get(name))
            for name in dict.fromkeys(request.POST.getlist("expect"))
        ),
    )


def _parse_edited_args(
    loaded: LoadedRequest, form: DecisionForm
) -> Mapping[str, Any] | None:
    tool = loaded.revision.tool
    if form.meant is not Verdict.MODIFY or tool is None:
        return None
    if form.seen != loaded.request.version:
        return loaded.revision.args  # `decide_request` refuses it as stale
    definition = tools.load_definition(tool)
    args, wrong = argument_form.parse_edits(definition, loaded.revision.args, form.data)
    if wrong:
        raise InvalidArgs("Some fields need correction.", errors=wrong)
    return args


def parse_version(key: str) -> int | None:
    """The request version in a `key` of the loaded request; None for another text."""
    number, _, _ = key.partition("-")
    return int(number) if number.isdecimal() and len(number) < 10 else None
