"""The table of every function that opens a transaction: what it locks, writes and logs,
and what it leaves for after the commit.

`manage.py transaction_map` prints it as docs/transactions.md;
tests/test_architecture.py compares it with the source.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One row: functions that lock, write and log the same.

    `functions` are the public entry points by their dotted names. Where an entry point
    does not open the transaction itself, `private` names the functions that do. `locks`
    are in the order they are taken, `writes` names models, `logs` names kinds of log
    records, and `after` says what happens after the commit.
    """

    functions: tuple[str, ...]
    private: tuple[str, ...] = ()
    locks: str = ""
    writes: str = ""
    logs: str = ""
    after: str = ""

    @property
    def opens(self) -> tuple[str, ...]:
        """The dotted names of the functions that open the transaction."""
        return self.private or self.functions


REVIEWS = (
    Operation(
        ("reviews.requests.proposals.withdraw_stopped_proposal",),
        locks="request, or grant and execution",
        writes="the rows of a withdrawal",
        logs="request.withdrawn, grant.revoked, execution.refused",
        after="wake-up",
    ),
    Operation(
        ("reviews.decisions.decide.decide_request",),
        private=(
            "reviews.decisions.preflight._draft_edit",
            "reviews.decisions.decide._record_verdict",
            "reviews.decisions.decide._log_refusal",
        ),
        locks="request, Lease, sums (MODIFY only)",
        writes="Decision, Snapshot, Lease, RequestVersion, Revision, Grant, Execution; "
        "Stop for a rejection that pauses the run",
        logs="decision.recorded, decision.second_person, request.rejected, "
        "request.escalated, request.modified, request.recallable, request.authorized, "
        "grant.issued, execution.queued, stop.raised; decision.refused in a "
        "transaction of its own",
        after="mail, nudge to the worker, wake-up of the waiting agent",
    ),
    Operation(
        ("reviews.decisions.modify.preview_edit",),
        private=("reviews.decisions.modify._build_preview",),
        locks="sums",
        writes="none: the transaction is rolled back",
    ),
    Operation(
        ("reviews.decisions.recall.recall_approval",),
        locks="request, Lease",
        writes="RequestVersion, Lease",
        logs="request.recalled",
        after="wake-up",
    ),
    Operation(
        ("reviews.decisions.returns.return_with_guidance",),
        locks="request, Lease",
        writes="RequestVersion, Note, Lease",
        logs="request.returned, note.added",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.decisions.returns.assign_request",),
        locks="request",
        writes="ApprovalRequest",
        logs="request.assigned",
        after="mail, wake-up",
    ),
    Operation(
        (
            "reviews.decisions.returns.record_view_shown",
            "reviews.decisions.returns.record_arbitration",
        ),
        locks="request",
        writes="arbitrate only: Note",
        logs="request.view_shown, note.added",
        after="wake-up",
    ),
    Operation(
        (
            "reviews.dialogue.messages.ask_agent",
            "reviews.dialogue.messages.answer_question",
        ),
        locks="request, Lease",
        writes="Message",
        logs="request.asked, request.answered",
        after="a webhook delivery, wake-up of the waiting agent",
    ),
    Operation(
        ("reviews.dialogue.messages.send_back",),
        locks="request, Lease",
        writes="Message, ApprovalRequest, Lease",
        logs="request.sent_back, lease.released",
        after="a webhook delivery, wake-up of the waiting agent",
    ),
    Operation(
        ("reviews.decisions.revoke.revoke_approval",),
        locks="request, or grant and execution",
        writes="RequestVersion, or Grant and Execution; Observation",
        logs="request.revoked, or grant.revoked and execution.refused",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.deadlines.extend_deadline",),
        locks="request",
        writes="ApprovalRequest",
        logs="request.extended",
        after="wake-up",
    ),
    Operation(
        ("reviews.deadlines.expire_chunk",),
        locks="deadlines (advisory, shared), requests (skip locked)",
        writes="ApprovalRequest, Observation",
        logs="request.expired",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.deadlines.close_recall_windows",),
        locks="requests (skip locked)",
        writes="ApprovalRequest, Grant, Execution",
        logs="request.authorized, grant.issued, execution.queued",
        after="nudge to the worker, wake-up",
    ),
    Operation(
        ("reviews.deadlines.enqueue_reminders",),
        locks="requests (skip locked)",
        writes="ApprovalRequest",
        after="mail",
    ),
    Operation(
        (
            "reviews.stops.incidents.declare_incident",
            "reviews.stops.incidents.end_incident",
        ),
        locks="deadlines (advisory); end also requests by id",
        writes="Incident; end also ApprovalRequest",
        logs="incident.declared, incident.ended",
        after="a task that moves the stored deadlines, mail",
    ),
    Operation(
        ("reviews.stops.incidents.advance_frozen_deadlines",),
        locks="deadlines (advisory), requests (skip locked)",
        writes="ApprovalRequest",
        logs="incident.held",
    ),
    Operation(
        ("reviews.holds.take.take_hold", "reviews.holds.take.offer_hold"),
        locks="request, the person's leases (advisory), Lease; those that make room "
        "(skip locked)",
        writes="Lease",
        logs="lease.taken, lease.lapsed, lease.offered, lease.offer_withdrawn, "
        "lease.handed_over, lease.released",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.holds.take.decline_offer", "reviews.holds.take.withdraw_offer"),
        locks="Lease",
        writes="Lease",
        logs="lease.declined, lease.offer_withdrawn",
        after="mail when it is declined, wake-up",
    ),
    Operation(
        ("reviews.holds.take.break_hold",),
        locks="request, Lease",
        writes="Lease",
        logs="lease.broken",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.holds.rows.release_hold",),
        locks="Lease",
        writes="Lease",
        logs="lease.released",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.holds.take.record_waiting_person",), locks="Lease", writes="Lease"
    ),
    Operation(
        ("reviews.holds.rows.free_lapsed_holds",),
        locks="leases (skip locked)",
        writes="Lease",
        logs="lease.lapsed",
        after="mail, wake-up",
    ),
    Operation(
        ("reviews.batches.decide.decide_batch",),
        private=(
            "reviews.batches.decide._record_verdict",
            "reviews.batches.decide._log_refusal",
        ),
        locks="Batch, requests by id, their leases by id",
        writes="Batch, BatchItem, and the rows of each decision",
        logs="batch.decided, and the records of each decision; batch.refused in a "
        "transaction of its own",
        after="what each decision leaves",
    ),
    Operation(
        ("reviews.batches.follow_up.recall_batch",),
        locks="Batch, requests by id",
        writes="the rows of each recall",
        logs="batch.recalled, request.recalled",
        after="wake-up",
    ),
    Operation(
        (
            "reviews.batches.follow_up.run_rest",
            "reviews.batches.follow_up.retry_failed",
        ),
        locks="executions by id, sums (advisory)",
        writes="Batch, Execution, Observation",
        logs="batch.resumed, execution.retried",
        after="nudge to the worker",
    ),
    Operation(
        (
            "reviews.batches.formation.form_batch_around",
            "reviews.batches.formation.form_missed_batches",
            "reviews.batches.formation.tidy_batch",
            "reviews.batches.formation.release_recalled_items",
        ),
        private=(
            "reviews.batches.formation._join_or_create",
            "reviews.batches.formation.tidy_batch",
            "reviews.batches.formation.release_recalled_items",
        ),
        locks="Batch",
        writes="Batch, BatchItem",
        logs="batch.formed, batch.joined, batch.left, batch.closed, batch.dissolved",
        after="wake-up",
    ),
    Operation(
        ("reviews.executions.claims.claim_execution",),
        locks="grant, execution, Alarm",
        writes="Grant, Execution, Observation, Batch (halted), Alarm",
        logs="grant.spent, grant.expired or grant.revoked; execution.claimed or "
        "execution.reclaimed, execution.refused, execution.unknown; alarm.raised",
        after="mail when an alarm was raised",
    ),
    Operation(
        (
            "reviews.executions.record.record_outcome",
            "reviews.executions.record.record_refusal",
            "reviews.executions.record.release_claim",
        ),
        locks="grant, execution, Alarm",
        writes="Execution, Grant, StateReading, Observation, Batch (halted), "
        "LateReport, Alarm",
        logs="execution.succeeded, execution.failed, execution.requeued, "
        "execution.unknown, execution.refused, execution.reported_late, "
        "alarm.raised, alarm.closed",
        after="mail when the outcome is unknown or an alarm was raised, wake-up",
    ),
    Operation(
        ("reviews.executions.record.record_late_report",),
        locks="grant, execution, Alarm",
        writes="LateReport, Alarm",
        logs="execution.reported_late, alarm.raised",
        after="mail",
    ),
    Operation(
        (
            "reviews.executions.reconcile.plan_look_up",
            "reviews.executions.reconcile.record_look_up",
        ),
        locks="grant, execution, Alarm",
        writes="Execution, LookUp, Observation, LateReport, Alarm",
        logs="execution.looked_up, execution.settled, execution.reported_late, "
        "alarm.raised",
        after="the look-up itself, between the two",
    ),
    Operation(
        (
            "reviews.executions.reconcile.plan_audit",
            "reviews.executions.reconcile.record_audit",
        ),
        locks="grant, execution, Alarm",
        writes="Execution, Observation, LateReport, Alarm",
        logs="execution.reported_late, alarm.raised",
        after="mail",
    ),
    Operation(
        (
            "reviews.executions.settle.settle_unknown",
            "reviews.executions.settle.retry_execution",
        ),
        locks="grant, execution; retry also its sums (advisory)",
        writes="Execution, Observation",
        logs="execution.settled, execution.retried",
        after="nudge to the worker",
    ),
    Operation(
        (
            "reviews.executions.repairs.propose_repair",
            "reviews.executions.repairs.confirm_repair",
            "reviews.executions.repairs.refuse_repair",
            "reviews.executions.repairs.lapse_repairs",
        ),
        locks="repair, grant, execution, Alarm",
        writes="Repair, Execution, Grant, Observation, Batch (halted), Alarm",
        logs="repair.proposed, repair.applied, repair.refused, repair.lapsed, and the "
        "records of a claim that is refused or lost",
    ),
    Operation(
        ("assurance.insertion.plant_canary",),
        private=(
            "assurance.clones._govern",
            "assurance.insertion.plant_canary",
        ),
        locks="the person's leases (advisory)",
        writes="Proposal, Revision, ApprovalRequest, RequestVersion, Canary",
        logs="canary.planted",
        after="wake-up",
    ),
    Operation(
        (
            "reviews.canary_verdicts.end_undecided_canary",
            "reviews.canary_verdicts.pass_on_canary",
        ),
        locks="request",
        writes="ApprovalRequest, Canary",
        logs="canary.revealed",
        after="wake-up",
    ),
    Operation(
        ("reviews.canary_verdicts.record_realism",),
        writes="Canary",
        logs="canary.flagged",
    ),
    Operation(
        (
            "assurance.library.propose_change",
            "assurance.library.confirm_change",
            "assurance.library.refuse_change",
            "assurance.library.withdraw_change",
            "assurance.library.lapse_changes",
        ),
        locks="DefectChange (lapse: skip locked)",
        writes="DefectChange",
        logs="defect.proposed, defect.changed, defect.refused, defect.withdrawn, "
        "defect.lapsed",
    ),
    Operation(
        (
            "assurance.practice.start_practice",
            "assurance.practice.record_answer",
            "assurance.practice.skip_practice",
            "assurance.practice.decline_warm_up",
        ),
        private=(
            "assurance.practice._store_practice",
            "assurance.practice.record_answer",
            "assurance.practice.skip_practice",
            "assurance.practice.decline_warm_up",
        ),
        locks="start only: the person's leases (advisory)",
        writes="Practice, PracticeItem",
    ),
    Operation(
        (
            "assurance.second_reviews.choose_decision",
            "assurance.second_reviews.record_answer",
            "assurance.second_reviews.record_ruling",
        ),
        writes="SecondReview",
        logs="second_review.chosen, second_review.answered, second_review.settled",
    ),
    Operation(
        ("stats.alerts.raise_alert", "stats.alerts.close_alert"),
        locks="Alarm",
        writes="Alarm",
        logs="alarm.raised, alarm.closed",
        after="mail",
    ),
    Operation(
        ("stats.rollups.store_day",),
        locks="the day",
        writes="MetricDay, MetricRollup",
    ),
    Operation(
        ("reviews.retention.erase_results",),
        locks="executions (skip locked)",
        writes="Execution",
        logs="execution.result_erased",
    ),
    Operation(
        ("reviews.stops.stops.create_stop", "reviews.stops.stops.lift_stop"),
        locks="none",
        writes="Stop",
        logs="stop.raised, stop.tightened, stop.lift_asked, stop.lifted",
        after="a task that withdraws and refuses what waits",
    ),
    Operation(
        ("reviews.standing_grants.issuance.issue_standing_grant",),
        locks="request",
        writes="StandingGrant",
        logs="standing_grant.issued",
    ),
    Operation(
        ("reviews.standing_grants.issuance.revoke_standing_grant",),
        locks="StandingGrant",
        writes="StandingGrant",
        logs="standing_grant.revoked",
    ),
    Operation(
        (
            "reviews.alarms.standing.acknowledge_alarm",
            "reviews.alarms.standing.close_alarm",
        ),
        locks="Alarm",
        writes="Alarm",
        logs="alarm.acknowledged, alarm.closed",
    ),
    Operation(
        ("reviews.alarms.standing.raise_for_dropped_messages",),
        locks="Alarm",
        writes="Alarm",
        logs="alarm.raised, alarm.repeated",
        after="mail",
    ),
    Operation(
        (
            "reviews.alarms.watch.raise_found_alarm",
            "reviews.alarms.watch.close_disproved_alarm",
        ),
        locks="grant, execution, Alarm",
        writes="Alarm",
        logs="alarm.raised, alarm.closed",
        after="mail",
    ),
    Operation(
        (
            "reviews.alarms.watch.raise_unvoted_request",
            "reviews.alarms.watch.raise_undecidable",
            "reviews.alarms.watch.close_undecidable",
        ),
        locks="request, Alarm",
        writes="Alarm",
        logs="alarm.raised, alarm.closed",
        after="mail",
    ),
    Operation(
        ("reviews.standstills.raise_or_close_alarm",),
        locks="Alarm",
        writes="Alarm",
        logs="alarm.raised, alarm.closed",
        after="mail",
    ),
    Operation(
        ("reviews.recovery.announce_restore", "reviews.recovery.confirm_restore"),
        locks="requests by id, executions by id",
        writes="Epoch, ApprovalRequest, Alarm, Grant, Execution",
        logs="epoch.noticed, epoch.asked, epoch.began, alarm.raised, execution.unknown",
        after="the host's note in `$STATE/epoch`",
    ),
    Operation(("reviews.decisions.drafts.add_note",), writes="Note", logs="note.added"),
    Operation(
        ("reviews.evidence.reveals.reveal_argument",),
        logs="value.revealed, durable before the value is shown",
    ),
    Operation(
        ("reviews.evidence.reveals.record_sightings",),
        writes="Sighting",
        logs="announced.seen, announced.near_miss",
    ),
    Operation(
        (
            "desk.log.exports.create_export",
            "desk.log.exports.write_export",
            "desk.log.exports.enqueue_rest",
        ),
        private=(
            "desk.log.exports.create_export",
            "desk.log.exports._write_part",
            "desk.log.exports.enqueue_rest",
        ),
        locks="Export",
        writes="Export, ExportPart",
        logs="export.asked, export.finished, export.failed",
        after="a task that writes the next part",
    ),
    Operation(
        ("assurance.datasets.consent.ask_dataset",),
        writes="Dataset",
        logs="dataset.asked",
    ),
    Operation(
        (
            "assurance.datasets.consent.consent_dataset",
            "assurance.datasets.consent.refuse_dataset",
            "assurance.datasets.consent.withdraw_dataset",
            "assurance.datasets.consent.lapse_datasets",
        ),
        locks="Dataset (lapse: skip locked)",
        writes="Dataset",
        logs="dataset.consented, dataset.refused, dataset.withdrawn, dataset.lapsed",
        after="a task that writes the file, after a consent",
    ),
    Operation(
        (
            "assurance.datasets.files.write_dataset",
            "assurance.datasets.files.enqueue_rest",
        ),
        private=(
            "assurance.datasets.files._write_part",
            "assurance.datasets.files.enqueue_rest",
        ),
        locks="Dataset",
        writes="Dataset, DatasetPart",
        logs="dataset.finished, dataset.failed",
        after="a task that writes the next part",
    ),
    Operation(
        ("assurance.datasets.files.open_file",),
        logs="dataset.downloaded, durable before the first byte is sent",
    ),
    Operation(
        (
            "notifications.on_call.shifts.plan_shift",
            "notifications.on_call.shifts.end_shift",
        ),
        locks="the queue's rota (advisory)",
        writes="OnCallShift",
        logs="on_call.planned, on_call.ended",
    ),
    Operation(
        ("notifications.on_call.drills.start_drill",),
        locks="the queue's rota (advisory)",
        writes="NotificationDrill",
        logs="drill.started",
        after="a message to the people whom the drill asks",
    ),
    Operation(
        ("notifications.on_call.drills.record_sighting",),
        writes="DrillSighting",
        logs="drill.seen",
    ),
    Operation(
        (
            "notifications.plan.plan_notices",
            "notifications.plan.enqueue_test_notice",
            "notifications.channels.attempts.postpone_notice",
            "notifications.channels.attempts.record_failure",
        ),
        writes="Notice",
        after="a message on its channel, at the time that each reader chose",
    ),
    Operation(
        (
            "notifications.channels.subscriptions.register_browser",
            "notifications.channels.subscriptions.remove_browser",
            "notifications.channels.subscriptions.remove_ended_subscription",
        ),
        writes="PushSubscription",
    ),
    Operation(
        (
            "reviews.people.preferences.save_preferences",
            "reviews.people.preferences.create_saved_view",
            "reviews.people.preferences.delete_saved_view",
        ),
        writes="Preferences, SavedView",
    ),
    Operation(
        ("reviews.people.tokens.create_token", "reviews.people.tokens.revoke_token"),
        writes="PersonalToken",
        logs="person.token_minted, person.token_revoked",
    ),
    Operation(
        (
            "reviews.stops.accounts.deactivate_account",
            "reviews.stops.accounts.reactivate_account",
        ),
        writes="Person, PersonalToken, Stop",
        logs="person.deactivated, person.reactivated, stop.raised",
        after="a task that revokes the person's approvals",
    ),
)
OPERATIONS = REVIEWS
