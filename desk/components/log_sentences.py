"""Log records as sentences; codes and hashes are on the record's own page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from journal.models import LogRecord
from reviews.administration.provisioning_tokens import PROVIDER
from reviews.choices import (
    GIVEN_REASON_LABELS,
    VERDICT_SPECS,
    AuthorityKind,
    Scope,
    StopMode,
    Verdict,
)
from reviews.effects.wording import WordingPart, build_wording, format_people

from .log_values import name_fields

HIDDEN_NAME = "A reviewer"
SENTENCES = {
    "proposal.submitted": "{who} proposed an action",
    "proposal.repeated": "{who} proposed an action that was rejected before in its run",
    "proposal.blocked": "{who} proposed an action that the policy blocks",
    "proposal.refused": "{who} made a call that Counterseal refused",
    "proposal.announced": "No approval required; listed under Activity",
    "request.opened": "Approval requested",
    "canary.planted": "A canary was planted; it can never be executed",
    "canary.revealed": "This was a canary, and it ended; nothing was executed",
    "canary.flagged": "{who} said how real a canary looked",
    "defect.proposed": "{who} proposed a change of the library of defects",
    "defect.changed": "{who} confirmed a change of the library of defects",
    "defect.refused": "{who} refused a change of the library of defects",
    "defect.withdrawn": "{who} withdrew a change of the library of defects",
    "defect.lapsed": "A change of the library of defects lapsed without an answer",
    "second_review.chosen": "A second review of a decision was requested",
    "second_review.answered": "{who} reviewed a decision a second time",
    "second_review.settled": "{who} settled a disagreement of two reviewers",
    "request.revised": "{who} revised the proposal; earlier votes no longer count",
    "request.modified": "{who} changed the arguments; earlier votes no longer count",
    "request.escalated": "{who} escalated the request",
    "announced.seen": "{who} marked the action as read",
    "announced.near_miss": "{who} reported a near miss",
    "request.view_shown": "{who} viewed the reviewer's opinion",
    "request.extended": "{who} extended the deadline",
    "hold.taken": "{who} claimed the request",
    "hold.released": "{who} released the request",
    "hold.lapsed": "The claim of {other} on the request expired",
    "hold.broken": "{who} ended the claim of {other}",
    "hold.offered": "{who} offered the request to {other}",
    "hold.offer_withdrawn": "{who} withdrew the offer to {other}",
    "hold.declined": "{who} declined the request that {other} offered",
    "hold.handed_over": "{who} accepted the request from {other}",
    "note.added": "{who} added a note",
    "request.recallable": "Approved; the undo window opened",
    "request.recalled": "{who} undid the approval; nothing was executed",
    "request.revoked": "An approval was revoked; the request needs a new one",
    "request.authorized": "Authorized",
    "request.rejected": "{who} rejected the request",
    "request.expired": "Expired without a decision",
    "request.withdrawn": "Withdrawn; no decision is needed",
    "request.superseded": "Replaced by a later proposal",
    "decision.second_person": (
        "{who} made an edit that needs another person, because {because}"
    ),
    "decision.tier_lowered": "{who} lowered the required approval by an edit",
    "grant.issued": "Permit issued",
    "grant.spent": "Permit used",
    "grant.expired": "Permit expired; nothing was executed",
    "grant.revoked": "Permit revoked; nothing was executed",
    "execution.queued": "Queued",
    "execution.claimed": "Started",
    "execution.reclaimed": "Taken over by another worker after the first was lost",
    "execution.succeeded": "Executed",
    "execution.failed": "Failed; nothing was changed",
    "execution.requeued": "Failed without effect; will be retried",
    "execution.unknown": "Result unknown",
    "execution.refused": "Refused by a check before execution",
    "execution.retried": "{who} requested a retry",
    "execution.settled": "{who} resolved the unknown result",
    "execution.looked_up": "{who} asked the tool's service for the result",
    "repair.proposed": "{who} proposed a repair",
    "repair.applied": "{who} confirmed a repair",
    "repair.refused": "{who} refused a repair",
    "repair.lapsed": "A repair expired without confirmation",
    "question.asked": "{who} asked people a question",
    "question.answered": "{who} answered a question",
    "question.declined": "{who} declined to answer a question",
    "question.expired": "A question expired without an answer",
    "question.withdrawn": "A question was withdrawn",
    "reversal.proposed": "{who} proposed to reverse the action",
    "thread.erased": "The run's stored state was deleted",
    "evidence.erased": "A file of the evidence was deleted; its hash stays",
    "texts.removed": "{count} old texts of {what} were removed by the retention rule",
    "execution.result_erased": "The tool's stored answer was deleted",
    "log.archive_asked": "{who} wrote a period of the log into a file",
    "log.archived": "{who} removed an archived period of the log",
    "log.period_began": "A new period of the log began",
    "epoch.noticed": "A restored database was detected; nothing runs",
    "epoch.asked": "{who} checked a restored database",
    "epoch.began": "{who} confirmed the restore, and a new epoch began",
    "database.promoted": "A standby of the database took over; nothing was lost",
    "stop.raised": "{who} stopped {scope} {key}",
    "stop.tightened": "{who} changed the pause of {scope} {key} to a stop",
    "stop.lift_asked": "{who} asked to resume {scope} {key}",
    "stop.lifted": "{who} resumed {scope} {key}",
    "standing_grant.issued": "{who} allowed calls of a tool in a run in advance",
    "standing_grant.revoked": "{who} revoked a standing grant",
    "incident.declared": "{who} declared an incident; deadlines are paused",
    "incident.held": "Paused deadlines were moved",
    "incident.ended": "{who} ended an incident; deadlines run again",
    "on_call.planned": "{who} put {other} on call for {queue}",
    "on_call.ended": "{who} ended the shift of {other} in {queue}",
    "drill.started": "{who} started a notification drill in {queue}",
    "drill.seen": "{who} saw the message of a notification drill",
    "policy.saved": "{who} saved policy version {version}",
    "policy.activated": "{who} activated policy version {version}",
    "policy.refused": "{who} refused the draft of policy version {version}",
    "policy.retired": "Policy version {version} was retired",
    "thread.started": "{who} started a run",
    "thread.finished": "{who} finished the run",
    "agent.registered": "{who} registered the agent {agent}",
    "agent.tools_changed": "{who} changed the allowed tools of {agent}",
    "agent.changed": "{who} changed {fields} of {agent}",
    "agent.change_proposed": "{who} asked for looser settings of {agent}",
    "agent.change_confirmed": "{who} confirmed looser settings of {agent}",
    "agent.change_refused": "{who} refused looser settings of {agent}",
    "agent.change_withdrawn": "{who} withdrew looser settings of {agent}",
    "agent.change_lapsed": "Looser settings of {agent} got no answer",
    "agent.change_void": "{who} changed {agent}: looser settings that waited are void",
    "agent.released": "{who} recorded a new version of {agent}",
    "agent.key_issued": "{who} issued a key of {agent}",
    "agent.key_revoked": "{who} revoked a key of {agent}",
    "endpoint.registered": "{who} registered a webhook endpoint of {agent}",
    "endpoint.secret_renewed": "{who} renewed a webhook secret of {agent}",
    "endpoint.tested": "{who} sent a test event to a webhook endpoint of {agent}",
    "endpoint.switched_off": "{who} disabled a webhook endpoint of {agent}",
    "endpoint.switched_on": "{who} enabled a webhook endpoint of {agent}",
    "delivery.promised": "Webhook delivery queued",
    "delivery.delivered": "Webhook delivered",
    "delivery.taken": "Webhook delivery ended; the agent already has the outcome",
    "delivery.dead": "Webhook delivery failed",
    "delivery.held": "Webhook delivery withheld; the outcome does not match its schema",
    "delivery.again": "{who} requested another webhook delivery",
    "outcome.acknowledged": "{who} acknowledged the outcome",
    "value.revealed": "{who} revealed a hidden value or a file",
    "person.added": "{who} added {other}",
    "person.changed": "{who} changed {fields} of {other}",
    "authority.proposed": "{who} proposed {change} {other}",
    "authority.confirmed": "{who} confirmed {change} {other}",
    "authority.refused": "{who} refused {change} {other}",
    "authority.withdrawn": "{who} withdrew {change} {other}",
    "authority.lapsed": "Nobody answered the proposal of {change} {other}",
    "person.password_chosen": "{who} chose a password",
    "person.password_set": "{who} set a new password for {other}",
    "person.factor_added": "{who} added an authenticator app",
    "person.factor_removed": "{who} removed the second factor of {other}",
    "person.passkey_added": "{who} added a passkey",
    "person.passkey_removed": "{who} removed a passkey",
    "person.passkey_refused": "A passkey was refused, because it may be a copy",
    "person.recovery_codes_renewed": "{who} made new recovery codes",
    "person.recovery_code_used": "{who} used a recovery code",
    "person.sessions_ended": "{who} ended {count} of {other}",
    "person.federated": "{other} signed in through the identity provider first",
    "person.unfederated": "{who} unlinked {other} from the identity provider",
    "person.deactivated": "{who} deactivated {other}",
    "person.reactivated": "{who} reactivated {other}",
    "provisioning.token_made": "{who} made a token for the identity provider",
    "provisioning.token_confirmed": "{who} confirmed a token of the identity provider",
    "provisioning.token_revoked": "{who} ended a token of the identity provider",
    "provisioning.group_added": "{who} added a group",
    "provisioning.group_changed": "{who} changed a group",
    "provisioning.group_removed": "{who} deleted a group",
    "person.admitted": "{who} admitted {other} to {queue}",
    "person.dismissed": "{who} removed {other} from {queue}",
    "queue.preset_changed": "{who} changed what the decision panel offers in {queue}",
    "substitution.began": "{who} handed queues to {other}",
    "substitution.ended": "{who} ended what {other} stood in for",
    "person.token_minted": "{who} created an API token",
    "person.token_revoked": "{who} revoked an API token",
    "batch.formed": "Similar requests grouped into a batch",
    "batch.closed": "The batch accepts no more requests",
    "batch.joined": "Similar requests added to a batch",
    "batch.left": "Requests removed from a batch; each is decided separately",
    "batch.decided": "{who} decided a batch",
    "batch.refused": "{who} tried to decide a batch; it had no effect",
    "batch.recalled": "{who} undid the approval of a batch; nothing was executed",
    "batch.resumed": "{who} resumed the rest of a batch",
    "batch.dissolved": "The batch was dissolved; each request is decided separately",
    "request.joined": "{who} proposed the same action again while this was open",
    "request.returned": "{who} returned the request with guidance",
    "request.moved": "{who} moved the request from {source} to {queue}",
    "request.assigned": "{who} assigned the request to {other}",
    "request.asked": "{who} asked a question",
    "request.answered": "{who} answered a question",
    "request.sent_back": "{who} sent the request back to the agent for revision",
    "execution.reported_late": "{who} reported a result too late",
    "alarm.raised": "Alarm raised",
    "alarm.repeated": "The cause of an alarm occurred again",
    "alarm.acknowledged": "{who} acknowledged an alarm",
    "alarm.closed": "{who} resolved an alarm",
    "export.asked": "{who} requested an export of the audit log",
    "export.finished": "An export of the audit log was completed",
    "export.failed": "An export of the audit log failed",
    "dataset.asked": "{who} asked for a dataset for evaluation",
    "dataset.consented": "{who} consented to a dataset for evaluation",
    "dataset.refused": "{who} refused a dataset for evaluation",
    "dataset.withdrawn": "{who} withdrew a dataset that they had asked for",
    "dataset.lapsed": "A dataset for evaluation lapsed; nobody answered in time",
    "dataset.finished": "A dataset for evaluation was completed",
    "dataset.failed": "A dataset for evaluation failed",
    "dataset.downloaded": "{who} downloaded a dataset for evaluation",
}
REMOVED_TEXTS = {"arguments": "actions", "questions": "questions of agents"}
REMOVED_TEXTS |= {name: name for name in ("messages", "notes")}
# What a person does to their own account.
OWN_SENTENCES = {
    "person.factor_removed": "{who} removed their second factor",
    "person.sessions_ended": "{who} ended {count} of their own",
}
CHANGE_WORDS: Mapping[str, str] = {
    AuthorityKind.INVITE: "the invitation of",
    AuthorityKind.WIDEN: "more authority for",
    AuthorityKind.REACTIVATE: "the reactivation of",
    AuthorityKind.RESET: "a new password for",
    AuthorityKind.FACTOR: "the removal of the second factor of",
}
# Where records, by their kind or the first word of it, name another person than their
# actor, by public id.
OTHER_PERSON = {
    **dict.fromkeys(("person", "authority", "on_call"), "person"),
    "substitution": "substitute",
    "request.assigned": "to",
    "hold.lapsed": "holder",
    "hold.broken": "holder",
    "hold.offered": "to",
    "hold.offer_withdrawn": "to",
    "hold.declined": "from",
    "hold.handed_over": "from",
}
HIDDEN_COLLEAGUE = WordingPart("a colleague", True)
# In these records the code may come from the tool or the agent.
FOREIGN_CODE_KINDS = {"execution.failed", "execution.requeued", "execution.unknown"}


def link_agent(slug: str) -> WordingPart:
    """An agent's name in a sentence, for a reader who may see its records."""
    return WordingPart(slug, True, reverse("agents:agent", args=[slug]))


def format_actor(
    row: LogRecord, names: Mapping[str, WordingPart], *, hide: bool
) -> WordingPart:
    """The actor's name: a person's (hidden on request), an agent's, the identity
    provider's, or Counterseal."""
    if row.actor_kind == "system" and row.actor_id.startswith(PROVIDER):
        return WordingPart("The identity provider", True)
    if row.actor_kind == "person":
        known = None if hide else names.get(row.actor_id)
        return known or WordingPart(HIDDEN_NAME if hide else "Someone", True)
    if row.actor_kind == "agent":
        return link_agent(row.actor_id)
    return WordingPart("Counterseal", True)


def find_other_person(leaf: Mapping[str, Any]) -> str:
    """The public id of the other person in a record about two; empty without one."""
    data, kind = leaf["data"] or {}, leaf["kind"] or ""
    group = kind.partition(".")[0]
    member = OTHER_PERSON.get(kind) or OTHER_PERSON.get(group, "")
    if group == "stop" and data.get("scope") == Scope.REVIEWER:
        member = "key"
    return str(data.get(member) or "")


def describe_record(
    row: LogRecord,
    leaf: Mapping[str, Any],
    actor: WordingPart,
    other: WordingPart = HIDDEN_COLLEAGUE,
) -> tuple[WordingPart, ...]:
    """What a record says happened, as the parts of a sentence. `other` is the name of
    the other person in it, where the reader may see it."""
    data = leaf["data"] or {}
    verdict = leaf["verdict"] or ""
    known = verdict in set(Verdict)
    if row.kind == "decision.recorded":
        past = VERDICT_SPECS[Verdict(verdict)].past if known else verdict
        past += " with conditions" if data.get("conditions") else ""
        return build_wording("{who} " + past, who=actor)
    if row.kind == "decision.refused":
        tried = verdict if known else "decide"
        pattern = "{who} tried to " + tried + "; it had no effect"
        return build_wording(pattern, who=actor)
    pattern = SENTENCES.get(row.kind, row.kind.replace(".", " ").replace("_", " "))
    if find_other_person(leaf) == row.actor_id:
        pattern = OWN_SENTENCES.get(row.kind, pattern)
    if row.kind == "stop.raised" and data.get("mode") == StopMode.PAUSED:
        pattern = "{who} paused {scope} {key}"
    if row.kind == "policy.activated" and row.actor_kind == "system":
        pattern = "{who} began with policy version {version}; nobody had an account yet"
    if data.get("change") in CHANGE_WORDS:
        pattern = pattern.replace("{change}", CHANGE_WORDS[data["change"]])
    if row.kind == "hold.lapsed" and data.get("to"):
        pattern += "; nobody answered its offer"
    return build_wording(
        pattern,
        who=actor,
        other=other,
        agent=link_agent(row.agent) if row.agent else "an agent",
        scope=_format_scope(data.get("scope")),
        key=_link_target(data, other),
        queue=str(data.get("queue", "")),
        source=str(data.get("from", "")),
        count=_format_count(row.kind, data.get("count", "")),
        what=REMOVED_TEXTS.get(str(data.get("what", "")), "the log"),
        version=str(data.get("number", leaf["policy"] or "")),
        fields=name_fields(data),
        because=" and ".join(map(str, data.get("because", []))),
    )


def _link_target(data: Mapping[str, Any], reviewer: WordingPart) -> WordingPart:
    """What a stop is over, with a link where it is a person or an agent."""
    key = str(data.get("key", ""))
    match data.get("scope"):
        case Scope.REVIEWER:
            return reviewer
        case Scope.AGENT:
            return link_agent(key)
        case _:
            return WordingPart(key, True)


def _format_count(kind: str, count: object) -> str:
    if kind == "person.sessions_ended":
        return format_people(int(str(count)), "session")
    return str(count)


def _format_scope(scope: object) -> str:
    return "run" if scope == "thread" else str(scope or "")


def find_answer_code(leaf: Mapping[str, Any]) -> str:
    """The failure code of a tool or its agent: untrusted text; empty for others."""
    data = leaf["data"] or {}
    return str(data.get("code") or "") if leaf["kind"] in FOREIGN_CODE_KINDS else ""


def list_flags(leaf: Mapping[str, Any]) -> list[str]:
    """The record's reason code as words, unless the code may be foreign text, and
    whether one person did alone what takes two outside solo mode."""
    data = leaf["data"] or {}
    if leaf["kind"] in FOREIGN_CODE_KINDS:
        return []
    reason = str(data.get("reason_code") or "")
    code = reason or str(data.get("code") or "")
    words = code.replace("_", " ").capitalize()
    flags = [GIVEN_REASON_LABELS.get(reason, words)] if code else []
    return [*flags, "Solo mode"] if data.get("solo") else flags
