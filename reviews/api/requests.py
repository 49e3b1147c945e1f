"""One request as an answer to people's programs: what its page prints, from the same
regions, so that neither says more than the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ninja import Schema

from policies.models import Person
from reviews.desk.components import page_evidence
from reviews.desk.components.regions import Regions
from reviews.effects import describe
from reviews.presenters import Presentation
from reviews.queries import sensitive
from reviews.queries.asked import Asked

from .schemas import (
    ChangeOut,
    DryRunOut,
    EvidenceOut,
    FigureOut,
    MovedOut,
    ReversalOut,
    RowOut,
    TagOut,
    UninspectableOut,
    ViewOut,
)

LISTS: tuple[str, ...] = ("tags", "size", "diff", "views", "other", "uninspectable")


def line(asked: Asked) -> dict[str, Any]:
    """A request as an item of a list."""
    row, version = asked.request, asked.version
    brief = describe.brief_of(version.revision)
    return {
        "id": row.pk,
        "proposal": row.proposal_id,
        "agent": row.proposal.agent,
        "thread": row.proposal.thread,
        "tool": row.proposal.tool_name,
        "title": describe.names(brief.effect),
        "flags": brief.flags,
        "status": row.status,
        "version": row.version,
        "action_hash": row.action_hash,
        "seal": version.seal,
        "tier": row.tier,
        "risk": row.risk,
        "queue": row.queue.name,
        "opened_at": row.opened_at.isoformat(),
        "expires_at": row.expires_at.isoformat(),
        "settled_at": row.settled_at.isoformat() if row.settled_at else None,
        "steps": asked.steps,
        "requires_reason": version.requires_reason,
        "step_up": version.step_up,
        "reading": asked.reading,
        "args": sensitive.hidden(version.revision),
        "rules": version.rules,
        "can_decide": asked.can_decide,
        "why_not": asked.why_not,
        "verdicts": asked.verdicts,
    }


def in_full(person: Person, asked: Asked) -> dict[str, Any]:
    """The same with all that the page shows of its version."""
    number = asked.version.number
    older = page_evidence.version(asked.request.pk, number - 1) if number > 1 else None
    regions = Regions(person, asked.version, reading=asked.newest, since=older)
    return {
        **line(asked),
        **_shown(regions),
        "reversal": _one(ReversalOut, regions.reversal),
        "rationale": regions.rationale,
        "claims": [{"heading": head, "text": text} for head, text in regions.claims],
        "said_at": regions.said_at.isoformat(),
        "written_for": regions.written_for,
        "evidence": _all(EvidenceOut, regions.evidence),
        "since": _since(regions),
        "policy": regions.policy,
    }


def _shown(regions: Regions) -> dict[str, Any]:
    shown = regions.shown
    if shown is None:  # a tool that nobody registered
        lists: dict[str, Any] = {name: [] for name in LISTS}
        return {**lists, "before": _before(regions, None), "dry_run": None}
    return {
        "tags": _all(TagOut, shown.tags),
        "size": _all(FigureOut, shown.size),
        "before": _before(regions, shown),
        "diff": _all(ChangeOut, shown.changes),
        "views": _all(ViewOut, shown.views),
        "other": _all(RowOut, shown.other),
        "uninspectable": _all(UninspectableOut, shown.uninspectable),
        "dry_run": _one(DryRunOut, shown.dry_run) if shown.dry_run else None,
    }


def _before(regions: Regions, shown: Presentation | None) -> dict[str, Any]:
    known = shown is not None and shown.before_known
    reading = regions.reading if known else {}
    return {
        "known": known,
        "problem": "" if known else regions.no_before,
        "source": str(reading.get("source") or ""),
        "at": str(reading.get("at") or ""),
        "top": _all(RowOut, shown.top if shown else ()),
        "unchanged": _all(RowOut, shown.unchanged if shown else ()),
        "now": _all(RowOut, shown.now if shown else ()),
    }


def _since(regions: Regions) -> dict[str, Any] | None:
    found = regions.since
    if found is None:
        return None
    return {
        "version": found.number,
        "cause": regions.sealed.cause,
        "diff": _all(MovedOut, found.rows),
        "words": found.words,
    }


def _all(schema: type[Schema], values: Iterable[Any]) -> list[dict[str, Any]]:
    return [_one(schema, value) for value in values]


def _one(schema: type[Schema], value: Any) -> dict[str, Any]:
    """What the schema names of a value, and nothing else of it."""
    said: dict[str, Any] = schema.from_orm(value).model_dump(mode="json")
    return said
