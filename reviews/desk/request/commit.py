"""From a submitted panel to one decision, and what the page asks for beside the
verdict.

A verdict on a page that has changed is refused, and so are too many approvals in a row.
The minimum reading time and the attention check only delay: the second try is accepted
and flagged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from journal.errors import (
    CheckMissed,
    DigestMissing,
    DomainError,
    InvalidArgs,
    Reason,
    Stale,
    TooFast,
)
from policies import active, tools
from policies.choices import Risk
from policies.documents import Desk
from reviews.attention_checks import questions
from reviews.attention_checks.questions import Question
from reviews.choices import Verdict
from reviews.decisions import decide, drafts, submission
from reviews.decisions.submission import Proof, Said, Seen
from reviews.desk import argument_form
from reviews.desk.components import page_evidence, throttle
from reviews.desk.components.regions import Regions
from reviews.desk.forms import DecisionForm
from reviews.effects.wording import people
from reviews.models import Decision

from .load import Loaded
from .page import ReviewPage

FAST, MISSED, NARROW = "fast", "check_missed", "narrow"
REMADE = "remade"
COMMITS = {Verdict.APPROVE, Verdict.MODIFY}
_ANSWERS = "answers"  # session key: the answers so far, by request version
_KEPT = 20
HEADER = "X-Seen"
# Reviewers with fewer decisions are new to the page and get no sampled question.
FIRST_DECISIONS = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """An attention check as a panel shows it; `answers` were given on earlier tries."""

    question: Question
    answers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Floor:
    """The minimum reading time: until when a commit must be repeated, and its
    seconds."""

    until: datetime
    seconds: int


class Notice:
    """What the page announces before the decision that it will ask for."""

    def __init__(self, session: SessionBase, page: ReviewPage) -> None:
        self._session = session
        self._page = page

    @cached_property
    def floor(self) -> Floor | None:
        """None once the time is over, and for a reviewer who was warned already."""
        page = self._page
        seconds = _floor(page.loaded)
        until = _opened(page) + timedelta(seconds=seconds)
        warned = page.on_screen.warned if page.on_screen else ()
        if until <= page.loaded.now or FAST in {page.warned, *warned}:
            return None
        return Floor(until, seconds)

    @cached_property
    def asks(self) -> bool:
        """Whether an approval comes with an attention check."""
        page = self._page
        given = page.loaded, page.regions, Verdict.APPROVE, _opened(page)
        return asked(self._session, *given) is not None

    def ready(self) -> None:
        """Load both, so that rendering does not wait for a query."""
        _ = self.floor, self.asks


def fit(request: HttpRequest, page: ReviewPage, *, partial: bool) -> None:
    """Adapt the page to what is on the screen already.

    Closes the panel if the screen shows another version, adds an attention check where
    one is due, and asks for no password that was given a moment ago.
    """
    page.partial, page.on_screen = partial, on_screen(request, page.loaded)
    page.notice = Notice(request.session, page)
    if page.armed is None:
        return
    if page.moved:
        page.armed = None
        return
    verdict = Verdict(page.armed.name)
    given = page.loaded, page.regions, verdict, _opened(page)
    question = asked(request.session, *given)
    page.armed = replace(
        page.armed,
        asked=question,
        answered=_answer(request, question),
        proved=_proved(request, page.loaded, verdict),
    )


def _proved(request: HttpRequest, loaded: Loaded, verdict: Verdict) -> bool:
    said = Said(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=verdict,
        version=loaded.request.version,
        action_hash=loaded.request.action_hash,
    )
    return submission.kept(request.session, said.bound, loaded.now) is not None


def on_screen(request: HttpRequest, loaded: Loaded) -> Seen | None:
    """What this person's browser already shows of the request; None without a valid
    token of their own.

    A script sends the page token in the `PAGE_TOKEN_HEADER` header, a form in its
    `seen` field.
    """
    sent = request.POST.get("seen") or request.GET.get("seen") or ""
    found = submission.read_or_none(request.headers.get(HEADER) or sent)
    # guard: own-screen
    if found is None or not found.is_for(loaded.person.public_id, loaded.request.pk):
        return None
    return found


def asked(
    session: SessionBase,
    loaded: Loaded,
    regions: Regions,
    verdict: Verdict,
    opened: datetime,
) -> Asked | None:
    """The attention check of this person and version; None where the policy asks none.

    Only for verdicts that let something happen. `opened` is when the person opened the
    page: decisions they make elsewhere in the meantime add no question.
    """
    if verdict not in COMMITS:
        return None
    often = _desk(loaded).micro_check.get(Risk(loaded.sealed.risk), 0)
    chance = seed(loaded)
    if not questions.is_due(chance, often):
        return None
    shown = regions.shown
    if shown is None or (often > 1 and _is_new(loaded, opened)):
        return None
    schema = tools.definition(loaded.revision.known_tool).arguments
    question = questions.question(shown, chance, schema)
    if question is None:
        return None
    return Asked(question, _answers(session).get(_key(loaded), ()))


def added(request: HttpRequest, loaded: Loaded, said: Said) -> Said:
    """The verdict with its page evidence, and with the refusal that the page deferred.

    Raises DigestMissing for a page without a valid token.
    """
    page = submission.read(request.POST.get("seen", ""))
    # guard: own-page
    if not page.is_for(loaded.person.public_id, loaded.request.pk):
        raise DigestMissing
    regions = _regions(loaded, page)
    sight = page_evidence.of(regions)
    opened = page.rendered_at
    question = asked(request.session, loaded, regions, said.verdict, opened)
    answer = _answer(request, question)
    told = list(_told(page, question, answer))
    narrow = [NARROW] if request.POST.get(NARROW) else []
    return replace(
        said,
        seen=sight,
        reading=page.reading or 0,
        took_ms=page.took_ms(loaded.now),
        check=_stored(question, answer),
        flags=(*said.flags, *told, *narrow),
        objection=_remade(page, said, sight.digest)
        or _missed(question, answer)
        or _too_fast(loaded, page, said)
        or _too_many(loaded, said),
    )


def remember(session: SessionBase, loaded: Loaded, said: Said) -> None:
    """Store the answers in the session: a first wrong answer counts even after a
    reload."""
    kept = _answers(session)
    kept[_key(loaded)] = tuple(said.check.get("answers", ()))
    session[_ANSWERS] = dict(list(kept.items())[-_KEPT:])


def forget(session: SessionBase, loaded: Loaded) -> None:
    """Drop the answers once the decision is made."""
    kept = _answers(session)
    if kept.pop(_key(loaded), None) is not None:
        session[_ANSWERS] = kept


def _desk(loaded: Loaded) -> Desk:
    """The desk rules of the policy that the version was sealed under, so that they do
    not change between two tries."""
    return active.compiled(loaded.sealed.policy).desk


def _floor(loaded: Loaded) -> int:
    return _desk(loaded).time_floor.get(Risk(loaded.sealed.risk), 0)


def _opened(page: ReviewPage) -> datetime:
    """When the page that the person has on the screen was made."""
    if page.partial:
        return page.on_screen.rendered_at if page.on_screen else page.loaded.now
    return page.seen.rendered_at


def _is_new(loaded: Loaded, opened: datetime) -> bool:
    mine = Decision.objects.filter(reviewer=loaded.person, at__lte=opened)
    return mine[:FIRST_DECISIONS].count() < FIRST_DECISIONS


def seed(loaded: Loaded) -> bytes:
    """The seed of this person's attention check on this version."""
    who = loaded.person.public_id
    text = f"{loaded.request.pk}:{loaded.request.version}:{who}"
    return salted_hmac("reviews.micro_checks", text, algorithm="sha256").digest()


def _key(loaded: Loaded) -> str:
    return f"{loaded.request.pk}:{loaded.request.version}"


def _answers(session: SessionBase) -> dict[str, tuple[int, ...]]:
    found: Mapping[str, Sequence[int]] = session.get(_ANSWERS, {})
    return {key: tuple(given) for key, given in found.items()}


def _regions(loaded: Loaded, page: Seen) -> Regions:
    """The regions of the page that was shown, rendered from the database now."""
    return Regions(
        loaded.person,
        loaded.sealed,
        reading=page_evidence.reading(loaded.sealed, page.reading),
        since=page_evidence.version(page.request, page.since) if page.since else None,
    )


def _answer(request: HttpRequest, question: Asked | None) -> int | None:
    sent = request.POST.get("answer", "")
    if question is None or not sent.isdecimal() or len(sent) > 2:
        return None
    answer = int(sent)
    return answer if answer < len(question.question.options) else None


def _told(page: Seen, question: Asked | None, answer: int | None) -> Sequence[str]:
    """The flags of a decision that the person insisted on after a warning."""
    flags = [FAST] if FAST in page.warned else []
    if question is not None and answer is not None:
        given = [*question.answers, answer]
        if not all(question.question.is_right(one) for one in given):
            flags.append(MISSED)
    return flags


def _stored(question: Asked | None, answer: int | None) -> dict[str, Any]:
    if question is None:
        return {}
    given = [*question.answers, *([] if answer is None else [answer])]
    return {
        "question": question.question.id,
        "answers": given,
        "right": question.question.right,
    }


def _remade(page: Seen, said: Said, digest: str) -> DomainError | None:
    """A refusal if the screen showed something other than what the verdict is about."""
    if (page.version, page.action_hash) != (said.version, said.action_hash):
        return Stale()
    if page.digest == digest:
        return None
    detail = (
        "This page is not what it was when you opened it. Nothing was recorded. "
        "Read it once more, then decide."
    )
    return Stale(detail, remade=True)


def _missed(question: Asked | None, answer: int | None) -> DomainError | None:
    if question is None or question.answers:
        return None  # the second answer is accepted, right or wrong
    if answer is None:
        return CheckMissed("Answer the question first. Nothing was recorded.")
    if question.question.is_right(answer):
        return None
    return CheckMissed(
        "That is not what this request does. Nothing was recorded. "
        f"Look at: {question.question.look}."
    )


def _too_many(loaded: Loaded, said: Said) -> DomainError | None:
    if said.verdict not in COMMITS:
        return None
    most = _desk(loaded).most_decisions
    return throttle.objection(loaded.person, most=most, now=loaded.now)


def _too_fast(loaded: Loaded, page: Seen, said: Said) -> DomainError | None:
    if said.verdict not in COMMITS or FAST in page.warned:
        return None
    took = (loaded.now - page.rendered_at).total_seconds()
    if took >= _floor(loaded):
        return None
    return TooFast(
        f"You opened this {people(max(int(took), 0), 'second')} ago. Nothing was "
        "recorded. If you have checked what changes, commit again."
    )


def commit(request: HttpRequest, loaded: Loaded, form: DecisionForm) -> None:
    """Submit the verdict.

    Raises what `decide_request` raises, DigestMissing for a form without version or
    action hash, Reason for another invalid field, InvalidArgs for an input of the wrong
    type.
    """
    _check(form)
    sent = form.cleaned_data
    said = Said(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=form.meant,
        version=sent["version"],
        action_hash=sent["action_hash"],
        reason_code=sent["reason_code"],
        reason=sent["reason"].replace("\r\n", "\n"),
        lease=request.POST.get("lease", "")[:40],
        flags=_leaning(form),
        pause=sent["pause"] and form.meant is Verdict.REJECT,
    )
    proof = _proof(request, said, sent["password"], loaded.now)
    said = replace(said, args=_args(loaded, form), step_up=proof)
    said = added(request, loaded, said)
    try:
        decide.decide(said)
    except CheckMissed:
        remember(request.session, loaded, said)
        raise
    drafts.discard(person=said.person, request_id=said.request_id)
    submission.forget(request.session)
    forget(request.session, loaded)


def _proof(
    request: HttpRequest, said: Said, password: str, now: datetime
) -> Proof | None:
    """From the password just typed, or one typed for exactly this decision a moment
    ago: after another refusal it need not be typed again."""
    proof = submission.prove(request, said.person, password, said.bound, now)
    if proof is None:
        return submission.kept(request.session, said.bound, now)
    submission.keep(request.session, proof)
    return proof


def _leaning(form: DecisionForm) -> tuple[str, ...]:
    """How the escalating reviewer would have decided, for a supervisor who asks."""
    said = form.cleaned_data["leaning"]
    return (f"leans_{said}",) if said and form.meant is Verdict.ESCALATE else ()


def _check(form: DecisionForm) -> None:
    if form.is_valid():
        return
    if {"verdict", "version", "action_hash"} & form.errors.keys():
        raise DigestMissing
    raise Reason


def _args(loaded: Loaded, form: DecisionForm) -> Mapping[str, Any] | None:
    tool = loaded.revision.tool
    if form.meant is not Verdict.MODIFY or tool is None:
        return None
    if form.seen != loaded.request.version:
        return loaded.revision.args  # `decide_request` refuses it as stale
    definition = tools.definition(tool)
    args, wrong = argument_form.read(definition, loaded.revision.args, form.data)
    if wrong:
        raise InvalidArgs("Some fields are not right yet.", errors=wrong)
    return args


def version_of(key: str) -> int | None:
    """The request version in a `key` of the loaded request; None for another text."""
    number, _, _ = key.partition("-")
    return int(number) if number.isdecimal() and len(number) < 10 else None
