"""What a service or an agent said of an effect: as it may be kept, and opened again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from django.conf import settings

from journal import canonical, encryption
from journal.errors import InvalidJson
from policies import tools
from reviews.redaction import redactor as redacting
from reviews.redaction.redactor import Redactor

from ..choices import BY_LOOK_UP, BY_PERSON
from ..executors import Outcome
from ..models import Execution


def redacted(execution: Execution, outcome: Outcome) -> Outcome:
    """The same, its words as they may be kept and logged: a service or an agent chose
    them."""
    redactor = _redactor(execution)
    code = redactor.text(outcome.code)[:64]
    code = "failed" if code in {BY_PERSON, BY_LOOK_UP} else code
    return replace(outcome, code=code, detail=redactor.text(outcome.detail))


def _redactor(execution: Execution) -> Redactor:
    proposal, revision = execution.grant.proposal, execution.grant.revision
    return redacting.of(
        proposal.agent,
        proposal.thread,
        tools.definition(revision.known_tool),
        revision.args,
        proposal=proposal.pk,
    )


def kept(execution: Execution, result: dict[str, Any]) -> dict[str, Any]:
    """A result's columns: sealed for the agent, redacted for people, a digest."""
    blob = canonical.encode(result)
    return {
        "result": encryption.seal(
            settings.HOLDPOINT.data_key, blob, execution.pk.encode()
        ),
        "result_shown": _redactor(execution).foreign(result),
        "result_digest": "sha256:" + hashlib.sha256(blob).hexdigest(),
    }


def result_of(execution: Execution) -> dict[str, Any] | None:
    """The whole result, for the agent that asked for the effect."""
    if execution.result is None:
        return None
    blob = encryption.open(
        settings.HOLDPOINT.data_key, bytes(execution.result), execution.pk.encode()
    )
    try:
        value: dict[str, Any] = canonical.parse(blob)
    except InvalidJson:  # kept by a release that did not ask whether it can be read
        return {"unreadable": True}
    return value
