"""Celery tasks of the gate. A task gets an id and calls operations. All state is in the
database, so a lost, doubled or forged message changes nothing."""

from __future__ import annotations

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
from .notifications import (
    mail_people,
    send_digest,
    send_notice,
    send_test,
)
from .sweeps import (
    close_recall_windows,
    drop_old_drafts,
    drop_old_exports,
    enforce_stop,
    enter_searched,
    expire_due,
    form_batch,
    freeze_deadlines,
    hold_deadlines,
    lapse_leases,
    prune,
    pulse_effects,
    remind_before_deadline,
    tidy_batches,
    watch,
    watch_epoch,
    write_export,
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
    "mail_people",
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
