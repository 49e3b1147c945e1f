"""Requests as JSON for people's programs.

The values come from the same regions as the page, so that neither shows more than the
other. A list of any length takes the same few queries. A sensitive argument is replaced
by a chip, as on the page; a chip sent back in an edit means the value is unchanged.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime
from ninja import Schema

from journal import clock, cursors
from journal.cursors import CursorPosition
from policies import tools
from policies.models import Person
from reviews import permissions
from reviews.batches import membership
from reviews.choices import RequestStatus, Verdict
from reviews.decisions import checks
from reviews.decisions.modify import EditRequirements
from reviews.dialogue import rounds
from reviews.effects import describe
from reviews.governance import readings as state_readings
from reviews.governance import voters
from reviews.models import ApprovalRequest, RequestVersion, Revision, StateReading
from reviews.presenters import Presentation

from ..components import choice, page_evidence, states
from ..components.regions import Regions
from ..components.states import EndedParent
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


@dataclass(frozen=True, slots=True)
class RequestForPerson:
    """One request in its current version, and which verdicts this person may give."""

    request: ApprovalRequest
    version: RequestVersion
    given: list[int]  # the step index of each approval that counts
    why_not: str  # why this person may not approve; empty if they may
    verdicts: list[Verdict]  # the verdicts that this person may give
    newest: StateReading | None  # None while the revision's own reading is current
    ended_parent: EndedParent | None

    @property
    def revision(self) -> Revision:
        return self.version.revision

    @property
    def can_decide(self) -> bool:
        return Verdict.APPROVE in self.verdicts

    @property
    def steps(self) -> list[dict[str, object]]:
        return [
            {
                "role": step["role"],
                "required": step["required"],
                "given": self.given.count(place),
            }
            for place, step in enumerate(self.version.steps)
        ]

    @property
    def reading(self) -> str:
        """The digest of the state that a verdict would be based on."""
        return state_readings.compute_effective_digest(self.newest, self.revision)


def select_after(
    rows: QuerySet[ApprovalRequest], place: CursorPosition | None
) -> QuerySet[ApprovalRequest]:
    """Select the requests after a place, the nearest deadline first, with the related
    rows that `load_for_person` needs."""
    related = rows.select_related("proposal", "queue")
    return cursors.select_after(related, place, "expires_at")


def load_for_person(
    person: Person, requests: Collection[ApprovalRequest]
) -> list[RequestForPerson]:
    """Load these requests for one person, in the given order: at most nine queries for
    any number of them, and two for each of their queues. Caller loaded their proposals
    and queues."""
    ids = [request.pk for request in requests]
    versions = membership.load_sealed_versions(requests)
    readings = state_readings.list_newest_by_revision(
        version.revision for version in versions.values()
    )
    counted, known = (
        voters.list_counted_votes(ids),
        permissions.load_decider_facts(person, ids),
    )
    deciders = functools.cache(voters.list_voters)
    ended = states.list_ended_parents(request.proposal for request in requests)
    loaded = []
    for request in requests:
        version, votes = versions[request.pk], counted[request.pk]
        why_not = permissions.describe_why_cannot_decide(
            person, request, version, known
        )
        verdicts: list[Verdict] = []
        if not why_not and request.status == RequestStatus.PENDING:
            people = deciders(request.queue_id)
            chosen = choice.build_verdict_choice(
                person, request, version, votes, people
            )
            why_not, verdicts = chosen.why_not_approve, chosen.verdicts
        newest = readings.get(version.revision_id)
        given = [step for step, _ in votes]
        loaded.append(
            RequestForPerson(
                request,
                version,
                given,
                why_not,
                verdicts,
                newest,
                ended.get(request.proposal.parent),
            )
        )
    return loaded


LeafChange = Callable[[Any, Any], Any]


def hide_sensitive(revision: Revision) -> dict[str, Any]:
    """The arguments with a chip in place of every sensitive value."""
    conceal = _build_concealer(revision)
    return _replace_sensitive(revision, revision.args, lambda value, _: conceal(value))


def restore_sensitive(revision: Revision, args: Mapping[str, Any]) -> dict[str, Any]:
    """Edited arguments with every unchanged chip replaced by the value behind it."""
    conceal = _build_concealer(revision)
    return _replace_sensitive(
        revision, args, lambda value, was: was if value == conceal(was) else value
    )


def _build_concealer(revision: Revision) -> Callable[[Any], str]:
    conceal = describe.build_concealer(revision)
    return lambda value: str(conceal(json.dumps(value, ensure_ascii=False)))


def _replace_sensitive(
    revision: Revision, args: Mapping[str, Any], change: LeafChange
) -> dict[str, Any]:
    tool = revision.tool
    names = tools.load_definition(tool).sensitive if tool else []
    replaced: dict[str, Any] = _replace_value(args, revision.args, "", names, change)
    return replaced


def _replace_value(
    value: Any, was: Any, path: str, names: list[str], change: LeafChange
) -> Any:
    """Apply `change` to each sensitive leaf, with the value that was there before."""
    if isinstance(value, Mapping):
        before = was if isinstance(was, Mapping) else {}
        return {
            key: _replace_value(
                item, before.get(key), f"{path}.{key}".strip("."), names, change
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        rows = was if isinstance(was, list) else []
        padded = [*rows, *[None] * len(value)]
        pairs = zip(value, padded, strict=False)
        return [_replace_value(item, old, path, names, change) for item, old in pairs]
    sensitive = any(path == name or path.startswith(f"{name}.") for name in names)
    return change(value, was) if sensitive else value


def build_line(asked: RequestForPerson) -> dict[str, Any]:
    """Build a request as an item of a list."""
    row, version = asked.request, asked.version
    brief = describe.load_brief(version.revision, asked.newest)
    return {
        "id": row.pk,
        "proposal": row.proposal_id,
        "ended_parent": _build_ended_parent(asked.ended_parent),
        "agent": row.proposal.agent,
        "thread": row.proposal.thread,
        "tool": row.proposal.tool_name,
        "title": describe.format_sentence(brief.effect),
        "flags": brief.flags,
        "status": row.status,
        "version": row.version,
        "action_hash": row.action_hash,
        "seal": version.seal,
        "tier": row.tier,
        "risk": row.risk,
        "queue": row.queue.name,
        "opened_at": clock.format_instant(row.opened_at),
        "expires_at": clock.format_instant(row.expires_at),
        "settled_at": clock.format_instant(row.settled_at) if row.settled_at else None,
        "steps": asked.steps,
        "joined": row.joined,
        "requires_reason": version.requires_reason,
        "step_up": version.step_up,
        "reading": asked.reading,
        "args": hide_sensitive(version.revision),
        "rules": version.rules,
        "can_decide": asked.can_decide,
        "why_not": asked.why_not,
        "verdicts": asked.verdicts,
    }


def _build_ended_parent(parent: EndedParent | None) -> dict[str, str] | None:
    if parent is None:
        return None
    at = parent.at.isoformat()
    return {"proposal": parent.proposal, "status": parent.status, "at": at}


def build_detail(person: Person, asked: RequestForPerson) -> dict[str, Any]:
    """Build a request with everything that the page shows of its version."""
    number = asked.version.number
    older = (
        page_evidence.find_version(asked.request.pk, number - 1) if number > 1 else None
    )
    regions = Regions(person, asked.version, reading=asked.newest, since=older)
    return {
        **build_line(asked),
        **_build_presentation(regions),
        "reversal": _dump_one(ReversalOut, regions.reversal),
        "rationale": regions.rationale,
        "claims": [{"heading": head, "text": text} for head, text in regions.claims],
        "said_at": clock.format_instant(regions.said_at),
        "written_for": regions.written_for,
        "evidence": _dump_all(EvidenceOut, regions.evidence),
        "since": _build_since(regions),
        "policy": regions.policy,
        "edit": _find_edit_rule(asked.revision),
        "barred_by_claims": asked.revision.facts.get("narrowed", {}).get("barred", 0),
        "attention_check": asked.can_decide and _has_attention_check(regions),
        **_build_dialogue(asked.request),
    }


def _find_edit_rule(revision: Revision) -> str:
    tool = revision.tool
    return tools.load_definition(tool).edit if tool else "second_person"


def _build_dialogue(request: ApprovalRequest) -> dict[str, Any]:
    since = request.with_agent_since
    messages = rounds.list_messages(request) if request.message_count else []
    return {
        "returned_at": clock.format_instant(since) if since else None,
        "messages": [
            {
                "from": message.role or "agent",
                "kind": message.kind,
                "text": message.text,
                "at": clock.format_instant(message.at),
                "round": message.round,
            }
            for message in messages
        ],
    }


def _has_attention_check(regions: Regions) -> bool:
    if choice.find_written_question(regions) is not None:
        return True
    return choice.find_attention_question(regions, clock.now()) is not None


def _build_presentation(regions: Regions) -> dict[str, Any]:
    shown = regions.shown
    if shown is None:  # a tool that nobody registered
        names = ("tags", "size", "diff", "views", "other", "uninspectable")
        lists: dict[str, Any] = {name: [] for name in names}
        return {**lists, "before": _build_before(regions, None), "dry_run": None}
    dry_run = None
    if shown.dry_run is not None:
        dry_run = _dump_one(DryRunOut, shown.dry_run)
        dry_run["at"] = _format_stored_time(shown.dry_run.at)
    return {
        "tags": _dump_all(TagOut, shown.tags),
        "size": _dump_all(FigureOut, shown.size),
        "before": _build_before(regions, shown),
        "diff": _dump_all(ChangeOut, shown.changes),
        "views": _dump_all(ViewOut, shown.views),
        "other": _dump_all(RowOut, shown.other),
        "uninspectable": _dump_all(UninspectableOut, shown.uninspectable),
        "dry_run": dry_run,
    }


def _build_before(regions: Regions, shown: Presentation | None) -> dict[str, Any]:
    known = shown is not None and shown.before_known
    reading = regions.reading if known else {}
    return {
        "known": known,
        "problem": "" if known else regions.no_before,
        "source": str(reading.get("source") or ""),
        "at": _format_stored_time(reading.get("at")),
        "top": _dump_all(RowOut, shown.top if shown else ()),
        "unchanged": _dump_all(RowOut, shown.unchanged if shown else ()),
        "now": _dump_all(RowOut, shown.now if shown else ()),
    }


def build_edit_preview(requirements: EditRequirements) -> dict[str, Any]:
    """Build what an edit needs, as the page says it before the commit."""
    made = requirements.made
    return {
        "tier": requirements.tier,
        "risk": requirements.risk,
        "steps": list(requirements.steps),
        "rules": list(requirements.rules),
        "counts": requirements.counts,
        "second_person": list(requirements.widenings),
        "exceeds": requirements.exceeds,
        "requires_reason": made.requires_reason,
        "step_up": made.step_up,
        "written_answer": checks.describe_written_answer(made)
        if requirements.counts
        else "",
    }


def _format_stored_time(text: object) -> str:
    at = parse_datetime(str(text or ""))
    return clock.format_instant(at) if at else ""


def _build_since(regions: Regions) -> dict[str, Any] | None:
    since = regions.since
    if since is None:
        return None
    return {
        "version": since.number,
        "cause": regions.sealed.cause,
        "diff": _dump_all(MovedOut, since.rows),
        "words": since.words,
    }


def _dump_all(schema: type[Schema], values: Iterable[Any]) -> list[dict[str, Any]]:
    return [_dump_one(schema, value) for value in values]


def _dump_one(schema: type[Schema], value: Any) -> dict[str, Any]:
    """Only those fields of a value that the schema names."""
    fields: dict[str, Any] = schema.from_orm(value).model_dump(mode="json")
    return fields
