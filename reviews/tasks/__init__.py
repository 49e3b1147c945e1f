"""Celery's side of the gate. A task carries an id and calls operations; what is true
is in the database, so a lost, doubled or forged message changes nothing."""

from __future__ import annotations

from .batches import form_batch, tidy_batches
from .delivery import send_digest, send_notice, send_test
from .executions import (
    audit_one,
    audit_refused,
    execute,
    lapse_repairs,
    look_up_one,
    look_up_unknown,
    queue_executions,
    recover_leases,
    run_execution,
)
from .exports import drop_old_exports, write_export
from .notifications import (
    mail_alarm,
    mail_announced,
    mail_assigned,
    mail_broken,
    mail_due_soon,
    mail_escalated,
    mail_freed,
    mail_handed_over,
    mail_incident,
    mail_offered,
    mail_opened,
    mail_returned,
    mail_revoked,
    mail_revoked_effect,
    mail_settled,
    mail_unknown,
)
from .stops import enforce_stop
from .sweeps import (
    close_recall_windows,
    expire_due,
    freeze_deadlines,
    hold_deadlines,
    lapse_leases,
    remind_before_deadline,
)
from .upkeep import (
    drop_old_drafts,
    enter_searched,
    prune,
    pulse_effects,
    watch,
    watch_epoch,
)

__all__ = [
    "audit_one",
    "audit_refused",
    "close_recall_windows",
    "drop_old_drafts",
    "drop_old_exports",
    "enforce_stop",
    "enter_searched",
    "execute",
    "expire_due",
    "form_batch",
    "freeze_deadlines",
    "hold_deadlines",
    "lapse_leases",
    "lapse_repairs",
    "look_up_one",
    "look_up_unknown",
    "mail_alarm",
    "mail_announced",
    "mail_assigned",
    "mail_broken",
    "mail_due_soon",
    "mail_escalated",
    "mail_freed",
    "mail_handed_over",
    "mail_incident",
    "mail_offered",
    "mail_opened",
    "mail_returned",
    "mail_revoked",
    "mail_revoked_effect",
    "mail_settled",
    "mail_unknown",
    "prune",
    "pulse_effects",
    "queue_executions",
    "recover_leases",
    "remind_before_deadline",
    "run_execution",
    "send_digest",
    "send_notice",
    "send_test",
    "tidy_batches",
    "watch",
    "watch_epoch",
    "write_export",
]
