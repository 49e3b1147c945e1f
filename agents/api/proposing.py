"""Proposing one action, alone or as one of many."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from pydantic import ValidationError

from journal.errors import DomainError, Invalid

from .. import idempotency, intake, proposals
from ..idempotency import Stored
from ..models import Agent
from ..schemas import BatchItemIn, ProposalIn
from .auth import note_refusal


def propose(agent: Agent, header: str | None, body: ProposalIn) -> Stored:
    """What this key was answered with, now or the first time. Raises the agents' codes
    of api.md."""
    key = intake.key_of(header, "POST", "/proposals", _said(body))
    stored = idempotency.replay(agent, key.text, key.fingerprint)
    if stored is not None:
        return stored
    intake.check_key(key)
    asked = intake.asked_to_propose(agent, body)
    return proposals.propose(agent=agent, key=key, asked=asked)


def _said(body: ProposalIn) -> dict[str, Any]:
    """What a key stands for. Who names no callback sends what the release before knew,
    so that a key given then is still known."""
    said = body.model_dump(mode="json", exclude={"idempotency_key"})
    if body.callback_url is None:
        del said["callback_url"]
    return said


def status_of(stored: Stored) -> int:
    """200 for what was there already."""
    return 200 if stored.replayed else stored.status


def propose_item(
    request: HttpRequest, agent: Agent, said: dict[str, Any]
) -> dict[str, Any]:
    """The answer of one item of a batch, whatever becomes of the others."""
    try:
        item = _checked_item(said)
        stored = propose(agent, item.idempotency_key, item)
    except DomainError as error:
        note_refusal(request, error)
        problem = {
            "code": error.code,
            "detail": error.detail,
            "errors": error.errors,
            **error.facts,
        }
        return {"status": error.status, "problem": problem}
    return {
        "status": status_of(stored),
        "replayed": stored.replayed,
        "proposal": stored.body,
    }


def _checked_item(said: dict[str, Any]) -> BatchItemIn:
    try:
        return BatchItemIn.model_validate(said)
    except ValidationError as error:
        raise Invalid(
            errors=[
                {
                    "path": ".".join(str(part) for part in fault["loc"]),
                    "message": fault["msg"],
                }
                for fault in error.errors()
            ]
        ) from None
