"""From a submitted panel to one operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from journal.errors import CheckMissed, DigestMissing, InvalidArgs, Reason
from policies import tools
from reviews import step_up
from reviews.choices import Verdict
from reviews.decisions import decide, drafts
from reviews.desk import argument_form
from reviews.desk.forms import DecisionForm
from reviews.desk.request import commit as care
from reviews.desk.request.load import Loaded
from reviews.said import Said
from reviews.step_up import Proof


def commit(request: HttpRequest, loaded: Loaded, form: DecisionForm) -> None:
    """Say the verdict. Raises what `decide` raises, DigestMissing for a page that
    lost its version or hash, InvalidArgs for an input of the wrong type."""
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
    said = care.added(request, loaded, said)
    try:
        decide.decide(said)
    except CheckMissed:
        care.remember(request.session, loaded, said)
        raise
    drafts.discard(person=said.person, request_id=said.request_id)
    step_up.forget(request.session)
    care.forget(request.session, loaded)


def _proof(
    request: HttpRequest, said: Said, password: str, now: datetime
) -> Proof | None:
    """From the password typed now, or one typed for exactly this a moment ago: when
    something else was wrong, it need not be typed again."""
    proof = step_up.prove(request, said.person, password, said.bound, now)
    if proof is None:
        return step_up.kept(request.session, said.bound, now)
    step_up.keep(request.session, proof)
    return proof


def _leaning(form: DecisionForm) -> tuple[str, ...]:
    """What who passes it up would have said, for a supervisor who asks."""
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
        return loaded.revision.args  # refused as stale, whatever was typed
    definition = tools.definition(tool)
    args, wrong = argument_form.read(definition, loaded.revision.args, form.data)
    if wrong:
        raise InvalidArgs("Some fields are not right yet.", errors=wrong)
    return args


def version_of(key: str) -> int | None:
    """The request version in a `Loaded.key`."""
    number, _, _ = key.partition("-")
    return int(number) if number.isdecimal() and len(number) < 10 else None
