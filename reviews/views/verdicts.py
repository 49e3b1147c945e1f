"""From a submitted panel to one operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from journal.errors import DigestMissing, InvalidArgs, Reason
from policies import tools
from reviews import decisions, permissions
from reviews.cases import Said
from reviews.choices import Verdict
from reviews.forms import DecisionForm, arguments
from reviews.queries.detail import Loaded


def commit(request: HttpRequest, loaded: Loaded, form: DecisionForm) -> None:
    """Say the verdict. Raises what `decide` raises, DigestMissing for a page that
    lost its version or hash, InvalidArgs for an input of the wrong type."""
    _check(form)
    sent = form.cleaned_data
    decisions.decide(
        Said(
            request_id=loaded.request.pk,
            person=loaded.person,
            verdict=form.meant,
            version=sent["version"],
            action_hash=sent["action_hash"],
            reason_code=sent["reason_code"],
            reason=sent["reason"].replace("\r\n", "\n"),
            args=_args(loaded, form),
            step_up=permissions.step_up(request, loaded.person, sent["password"]),
        )
    )


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
    args, wrong = arguments.read(definition, loaded.revision.args, form.data)
    if wrong:
        raise InvalidArgs("Some fields are not right yet.", errors=wrong)
    return args


def version_of(key: str) -> int | None:
    """The request version in a `Loaded.key`."""
    number, _, _ = key.partition("-")
    return int(number) if number.isdecimal() and len(number) < 10 else None
