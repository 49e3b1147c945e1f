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
)
OPERATIONS = REVIEWS
