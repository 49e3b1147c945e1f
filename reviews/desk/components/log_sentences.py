"""Log records as sentences; codes and hashes are on the record's own page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journal.models import LogRecord
from reviews.choices import VERDICT_SPECS, StopMode, Verdict
from reviews.effects.wording import WordingPart, build_wording

HIDDEN_NAME = "A reviewer"
SENTENCES = {
    "proposal.submitted": "{who} proposed",
    "proposal.blocked": "{who} proposed what the policy blocks",
    "proposal.refused": "{who} made a call that was refused",
    "proposal.announced": "It was announced to people",
    "request.opened": "People were asked",
    "request.revised": "{who} replaced the proposal; earlier votes are void",
    "request.modified": "{who} changed the arguments; earlier votes are void",
    "request.escalated": "{who} escalated it",
    "announced.seen": "{who} saw what was announced",
    "announced.near_miss": "{who} called it a near miss",
    "request.view_shown": "{who} looked at what the reviewer thinks",
    "request.extended": "{who} gave it more time",
    "lease.taken": "{who} took it up",
    "lease.released": "{who} gave it back",
    "lease.lapsed": "A hold on it ran out",
    "lease.broken": "{who} broke another's hold",
    "lease.offered": "{who} offered it to a colleague",
    "lease.handed_over": "{who} took over what was offered",
    "note.added": "{who} wrote a note",
    "request.recallable": "Approved; the recall window opened",
    "request.recalled": "{who} recalled the approval; nothing was executed",
    "request.revoked": "An approval was revoked; others are asked",
    "request.authorized": "It was authorized",
    "request.rejected": "{who} rejected it",
    "request.expired": "Nobody answered in time",
    "request.withdrawn": "It was withdrawn; there is nothing to decide",
    "request.superseded": "A later proposal replaced it",
    "decision.tier_lowered": "{who} lowered the tier by an edit",
    "grant.issued": "A one-use grant was issued",
    "grant.spent": "The grant was used",
    "grant.expired": "The grant expired; nothing was executed",
    "grant.revoked": "The grant was revoked; nothing was executed",
    "execution.queued": "It was queued to run",
    "execution.claimed": "It started",
    "execution.reclaimed": "It was taken over after a lost worker",
    "execution.succeeded": "It was done",
    "execution.failed": "It failed; nothing was changed",
    "execution.requeued": "It failed without effect and will be tried again",
    "execution.unknown": "Its outcome is unknown; a person must say",
    "execution.refused": "A check before the effect refused it",
    "execution.retried": "{who} asked to try it again",
    "execution.settled": "{who} said what had happened",
    "execution.looked_up": "{who} asked the service what had happened",
    "repair.proposed": "{who} proposed a repair",
    "repair.applied": "{who} confirmed a repair",
    "repair.refused": "{who} refused a repair",
    "repair.lapsed": "Nobody confirmed a repair in time",
    "reversal.proposed": "{who} proposed to undo what was done",
    "thread.erased": "What the run had left behind was erased",
    "execution.result_erased": "What the service had answered was erased",
    "epoch.noticed": "An older database was noticed; nothing runs",
    "epoch.asked": "{who} looked at a restored database",
    "epoch.began": "{who} agreed, and a new epoch began after a restore",
    "stop.raised": "{who} stopped {scope} {key}",
    "stop.tightened": "{who} turned a pause of {scope} {key} into a stop",
    "stop.lift_asked": "{who} asked to switch {scope} {key} on again",
    "stop.lifted": "{who} switched {scope} {key} on again",
    "incident.declared": "{who} declared an incident; deadlines stand still",
    "incident.held": "Deadlines that stand still were moved on",
    "incident.ended": "{who} ended an incident; deadlines run again",
    "policy.saved": "{who} saved policy version {version}",
    "policy.activated": "{who} activated policy version {version}",
    "policy.retired": "Policy version {version} was retired",
    "thread.started": "{who} began a run",
    "thread.finished": "{who} finished the run",
    "agent.registered": "{who} registered an agent",
    "agent.tools_changed": "{who} changed what an agent may propose",
    "agent.changed": "{who} changed an agent's tools, risk ceiling or owner",
    "agent.released": "{who} recorded another version of an agent",
    "agent.key_issued": "{who} issued a key of an agent",
    "agent.key_revoked": "{who} revoked a key of an agent",
    "endpoint.registered": "{who} registered an endpoint of an agent",
    "endpoint.secret_renewed": "{who} gave an endpoint of an agent a new secret",
    "endpoint.switched_off": "{who} switched an endpoint of an agent off",
    "endpoint.switched_on": "{who} switched an endpoint of an agent on",
    "delivery.promised": "A letter to the agent was promised",
    "delivery.delivered": "The agent's endpoint took a letter",
    "delivery.taken": "The agent had it already; no more letters about it",
    "delivery.dead": "A letter to the agent was given up",
    "delivery.held": "A letter to the agent was kept back; it does not fit",
    "delivery.again": "{who} had a letter to the agent sent again",
    "outcome.acknowledged": "{who} took note of the outcome",
    "value.revealed": "{who} looked at a hidden value",
    "person.added": "{who} added a person",
    "person.changed": "{who} changed a person's {fields}",
    "person.password_set": "{who} gave a person a new password",
    "person.deactivated": "{who} deactivated a person",
    "person.reactivated": "{who} activated a person again",
    "person.admitted": "{who} let a person decide in {queue}",
    "person.dismissed": "{who} took a person out of {queue}",
    "person.token_minted": "{who} minted a personal token",
    "person.token_revoked": "{who} revoked a personal token",
    "batch.formed": "Alike requests were put together in a batch",
    "batch.closed": "The batch takes no more members",
    "batch.joined": "Alike requests joined a batch",
    "batch.left": "Requests left a batch; each stands alone",
    "batch.decided": "{who} decided a batch",
    "batch.refused": "{who} tried to decide a batch; it had no effect",
    "batch.recalled": "{who} recalled a batch; nothing was executed",
    "batch.resumed": "{who} let the rest of a batch run",
    "batch.dissolved": "The batch was dissolved; each request stands alone",
    "request.returned": "{who} gave it back with guidance",
    "request.assigned": "{who} assigned it",
    "execution.reported_late": "{who} said too late what became of it",
    "alarm.raised": "An alarm was raised",
    "alarm.repeated": "What an alarm stands for happened again",
    "alarm.acknowledged": "{who} looks at an alarm",
    "alarm.closed": "{who} closed an alarm",
    "export.asked": "{who} asked for an export of the log",
    "export.finished": "An export of the log was finished",
    "export.failed": "An export of the log failed",
}
# In these records the code may come from the tool or the agent.
FOREIGN_CODE_KINDS = {"execution.failed", "execution.requeued", "execution.unknown"}


def format_actor(row: LogRecord, names: Mapping[str, str], *, hide: bool) -> str:
    """The actor's name: a person's (hidden on request), an agent's, or Holdpoint."""
    if row.actor_kind == "person":
        return HIDDEN_NAME if hide else names.get(row.actor_id, "Someone")
    return row.actor_id if row.actor_kind == "agent" else "Holdpoint"


def describe_record(
    row: LogRecord, leaf: Mapping[str, Any], actor: str
) -> tuple[WordingPart, ...]:
    """What a record says happened, as the parts of a sentence."""
    data = leaf["data"] or {}
    verdict = leaf["verdict"] or ""
    known = verdict in set(Verdict)
    if row.kind == "decision.recorded":
        past = VERDICT_SPECS[Verdict(verdict)].past if known else verdict
        return build_wording("{who} " + past, who=actor)
    if row.kind == "decision.refused":
        tried = verdict if known else "decide"
        pattern = "{who} tried to " + tried + "; it had no effect"
        return build_wording(pattern, who=actor)
    pattern = SENTENCES.get(row.kind, row.kind.replace(".", " ").replace("_", " "))
    if row.kind == "stop.raised" and data.get("mode") == StopMode.PAUSED:
        pattern = "{who} paused {scope} {key}"
    return build_wording(
        pattern,
        who=actor,
        scope=_format_scope(data.get("scope")),
        key=str(data.get("key", "")),
        queue=str(data.get("queue", "")),
        version=str(data.get("number", leaf["policy"] or "")),
        fields=" and ".join(str(data.get("fields", "")).split()),
    )


def _format_scope(scope: object) -> str:
    return "run" if scope == "thread" else str(scope or "")


def find_answer_code(leaf: Mapping[str, Any]) -> str:
    """The failure code that a tool or its agent gave: untrusted text; empty for other
    records."""
    data = leaf["data"] or {}
    return str(data.get("code") or "") if leaf["kind"] in FOREIGN_CODE_KINDS else ""


def list_flags(leaf: Mapping[str, Any]) -> list[str]:
    """The record's reason code as words, unless the code may be foreign text."""
    data = leaf["data"] or {}
    if leaf["kind"] in FOREIGN_CODE_KINDS:
        return []
    code = data.get("reason_code") or data.get("code") or ""
    return [str(code).replace("_", " ").capitalize()] if code else []
