"""From a submitted panel to one decision, with the evidence of the page that was on the
screen.

A verdict on a page that has changed is refused. What the page defers (a wrong answer, a
commit that came too soon) is refused by the operation, after its own checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from journal.errors import (
    AttentionCheckFailed,
    DigestMissing,
    DomainError,
    InvalidArgs,
    InvalidInput,
    ReasonMissing,
    StaleVersion,
    build_field_error,
)
from policies import passkeys, tools
from policies.choices import Risk
from policies.step_up import TypedProof
from reviews.choices import Verdict
from reviews.decisions import decide, drafts, submission
from reviews.decisions.submission import (
    PageEvidence,
    PageToken,
    ProofScope,
    StepUpProof,
    VerdictSubmission,
)
from reviews.models import RequestVersion

from .. import argument_form
from ..components import page_evidence, ready_texts
from ..components.regions import Regions
from ..forms import DecisionForm
from . import attention, conditions
from .attention import AttentionCheck, SentAnswers
from .load import LoadedRequest
from .reading_time import FAST, find_haste_refusal

NARROW = "narrow"  # the flag of a decision on a narrow screen
REMADE = "remade"
SCOPE_FIELDS = {"verdict", "version", "action_hash"}


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
    verdict = VerdictSubmission(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=form.meant,
        version=sent["version"],
        action_hash=sent["action_hash"],
        reason_code=sent["reason_code"],
        reason=ready_texts.read_note(loaded.preset, sent["reason"], sent["ready"]),
        hold=request.POST.get("hold", "")[:40],
        pause=sent["pause"] and form.meant is Verdict.REJECT,
        conditions=conditions.parse_conditions(
            loaded, form, request.POST.getlist("expect")
        ),
    )
    typed = TypedProof(sent["password"], sent["one_time_code"], sent["passkey"])
    proof = _find_step_up_proof(request, verdict, typed, loaded.now)
    verdict = replace(verdict, args=_parse_edited_args(loaded, form), step_up=proof)
    verdict = attach_page_evidence(request, loaded, verdict, _list_leaning_flags(form))
    try:
        decide.decide_request(verdict)
    except AttentionCheckFailed:
        _record_answers(request, loaded, verdict.page)
        raise
    drafts.discard_drafts(person=loaded.person, request_id=loaded.request.pk)
    submission.discard_proof(request.session)
    attention.forget_answers(request.session, loaded)


def build_passkey_options(loaded: LoadedRequest, form: DecisionForm) -> dict[str, Any]:
    """What a browser needs to confirm the form's verdict by a passkey. Raises
    DigestMissing for a form without verdict, version or action hash."""
    if form.errors.keys() & SCOPE_FIELDS:
        raise DigestMissing
    sent = form.cleaned_data
    bound = ProofScope(
        loaded.person.public_id,
        loaded.request.pk,
        sent["version"],
        sent["action_hash"],
        form.meant,
    )
    return passkeys.build_request_options(bound.purpose, loaded.person, verified=True)


def _record_answers(
    request: HttpRequest, loaded: LoadedRequest, page: PageEvidence | None
) -> None:
    given = page.answered.get("answers", ()) if page else ()
    edit = page.edit if page else None
    asked = edit.asked if isinstance(edit, EditExamination) else None
    attention.record_answers(request.session, loaded, given, asked)


def attach_page_evidence(
    request: HttpRequest,
    loaded: LoadedRequest,
    verdict: VerdictSubmission,
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
    rendered = page_evidence.render_regions(regions)
    fast = [FAST] if FAST in page.warned else []
    narrow = [NARROW] if request.POST.get(NARROW) else []
    evidence = PageEvidence(
        rendered=rendered,
        took_ms=page.took_ms(loaded.now),
        flags=(*flags, *fast, *narrow),
        deferred_refusal=_refuse_changed_page(page, verdict, rendered.digest),
    )
    answers = SentAnswers(request.POST, request.session)
    if verdict.verdict is Verdict.MODIFY:
        edit = EditExamination(answers, loaded, page, verdict, evidence)
        hasty = find_haste_refusal(loaded, page, verdict, Risk(loaded.sealed.risk))
        refusal = evidence.deferred_refusal or hasty
        evidence = replace(evidence, edit=edit, deferred_refusal=refusal)
    else:
        given = attention.collect_answers(
            answers, loaded, regions, verdict.verdict, page.rendered_at
        )
        refusal = given.refusal or find_haste_refusal(
            loaded, page, verdict, Risk(loaded.sealed.risk)
        )
        evidence = replace(
            evidence,
            check=given.record,
            flags=(*flags, *fast, *given.flags, *narrow),
            deferred_refusal=evidence.deferred_refusal or refusal,
        )
    return replace(verdict, reading=page.reading or 0, page=evidence)


@dataclass
class EditExamination:
    """What the page asks about the version that an edit makes: that version, and not
    the one on the screen, is what the editor's vote counts for."""

    answers: SentAnswers
    loaded: LoadedRequest
    page: PageToken
    verdict: VerdictSubmission
    evidence: PageEvidence
    examined: PageEvidence | None = field(default=None, init=False)
    asked: tuple[Regions, AttentionCheck | None] | None = field(
        default=None, init=False
    )

    def examine(self, made: RequestVersion) -> PageEvidence:
        loaded, verdict = self.loaded, self.verdict
        regions = Regions(loaded.person, made)
        given = attention.collect_answers(
            self.answers, loaded, regions, verdict.verdict, self.page.rendered_at
        )
        refusal = given.refusal or find_haste_refusal(
            loaded, self.page, verdict, Risk(made.risk)
        )
        self.asked = regions, given.check
        self.examined = replace(
            self.evidence,
            check=given.record,
            flags=(*self.evidence.flags, *given.flags),
            deferred_refusal=self.evidence.deferred_refusal or refusal,
        )
        return self.examined


def _refuse_changed_page(
    page: PageToken, verdict: VerdictSubmission, digest: str
) -> DomainError | None:
    """A refusal if the screen showed something other than what the verdict is about."""
    if (page.version, page.action_hash) != (verdict.version, verdict.action_hash):
        return StaleVersion()
    if page.digest == digest:
        return None
    detail = (
        "This page has changed since you opened it. Nothing was recorded. "
        "Read it again, then decide."
    )
    return StaleVersion(detail, remade=True)


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


def _find_step_up_proof(
    request: HttpRequest, verdict: VerdictSubmission, typed: TypedProof, now: datetime
) -> StepUpProof | None:
    """From the password, code or passkey just given, or one given for exactly this
    decision a moment ago: after another refusal it need not be given again."""
    proof = submission.prove_identity(
        request, verdict.person, typed, verdict.bound, now
    )
    if proof is None:
        return submission.find_stored_proof(request.session, verdict.bound.digest, now)
    submission.store_proof(request.session, proof)
    return proof


def _list_leaning_flags(form: DecisionForm) -> tuple[str, ...]:
    """How the escalating reviewer would have decided, for a supervisor who asks."""
    leaning = form.cleaned_data["leaning"]
    escalates = form.meant is Verdict.ESCALATE
    return (f"leans_{leaning}",) if leaning and escalates else ()


def _check_form(form: DecisionForm) -> None:
    if form.is_valid():
        return
    if form.errors.keys() & SCOPE_FIELDS:
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
