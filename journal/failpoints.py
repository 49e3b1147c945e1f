"""Named points in the code at which a test can kill, break or freeze the process, to
prove that what it leaves behind is consistent.

While COUNTERSEAL_FAULT is not set, passing a point costs one comparison with an empty
string.
"""

from __future__ import annotations

import os
import signal
import threading
import uuid
from enum import StrEnum
from pathlib import Path

# The folder of flag files. The file `<point>` acts on the first process that passes
# that point, and `<point>@<subject>` on the first that passes it for that row. Its
# content is a FaultAction; an empty file kills. The process removes the flag before it
# acts, so that its successor passes unharmed.
ARMED = os.environ.get("COUNTERSEAL_FAULT", "")
STOPPED_PREFIX = (
    "stopped-"  # while a process is frozen, `stopped-<pid>` holds its flag's name
)

# Every point in the code and the state of the process there;
# tests/journal/test_failpoints.py compares the table with the code.
POINTS = {
    "proposed_uncommitted": "a proposal is written, its answer not yet stored",
    "decided_uncommitted": "a verdict and its consequences are written",
    "batch_uncommitted": "one verdict on a batch is written",
    "grant_uncommitted": "a request is authorised, its grant and execution are written",
    "recall_uncommitted": "an approval is undone",
    "window_uncommitted": "the end of a recall window is written",
    "expiry_uncommitted": "overdue requests are marked expired",
    "stop_uncommitted": "one proposal is withdrawn under a stop",
    "stop_enforced": "a sweep has withdrawn its proposals under a stop",
    "before_nudge": "committed, the broker is not notified yet",
    "before_announce": "committed, no listener is notified yet",
    "swept_unmoved": "the sweep has sent a message and not recorded that it did",
    "message_uncommitted": "an outbox message is being claimed",
    "message_claimed": "an outbox message is claimed, its work not begun",
    "before_claim": "an execution is about to be claimed",
    "claim_uncommitted": "the grant is spent, fence and lease are written",
    "after_claim": "an execution is claimed, nothing is checked yet",
    "looked_up": "a look-up has found the result of an earlier attempt",
    "rechecked": "every check has passed",
    "before_effect": "the lease is still valid, the service is called next",
    "after_effect": "the service has answered",
    "before_record": "only this process knows the outcome",
    "record_uncommitted": "the outcome is written",
    "after_record": "the outcome is recorded, its outbox message still open",
    "before_done": "the work is done, its outbox message still open",
    "redeem_taken": "an agent has claimed, nothing is checked yet",
    "redeemed": "an agent's claim is checked, its answer not sent",
    "settle_uncommitted": "a person's answer to an unknown result is written",
    "retry_uncommitted": "a known failure is queued again",
    "deliveries_uncommitted": "the webhook deliveries of one event are written",
    "delivery_taken": "a webhook delivery is claimed, its endpoint not called yet",
    "delivery_answered": "the endpoint has answered, nothing is written yet",
    "delivery_uncommitted": "the result of one attempt at a delivery is written",
    "mail_taken": "the mail server has a mail, nothing is written yet",
    "acknowledged_uncommitted": "an agent's acknowledgement of an outcome is written",
    "epoch_uncommitted": "the second person has confirmed, and a new epoch is written",
    "canary_uncommitted": "a canary and its request are written",
    "sequence_uncommitted": "records have their positions in the log",
}


class FaultAction(StrEnum):
    """What happens to the process that passes an armed point."""

    KILL = "kill"  # SIGKILL
    RAISE = "raise"  # an exception
    STOP = "stop"  # SIGSTOP, until it receives SIGCONT


class InjectedFault(Exception):
    """The exception that FaultAction.RAISE raises. No code catches it by name."""


def point(name: str, subject: str = "") -> None:
    """Perform the action of a flag for this point, or for this point and `subject`, if
    there is one. `subject` is the id of the row at hand."""
    if ARMED:
        _trigger_faults(name, subject)


def _trigger_faults(name: str, subject: str) -> None:
    for flag in (f"{name}@{subject}", name):
        action = _take_flag(Path(ARMED) / flag)
        if action is not None:
            _perform_fault(action, flag)


def _take_flag(flag: Path) -> FaultAction | None:
    """Remove the flag and return its action; None if there is no flag. The rename makes
    sure that only one of several concurrent processes gets it."""
    own_flag = flag.with_name(f".{uuid.uuid4().hex}")
    try:
        flag.rename(own_flag)
    except FileNotFoundError:
        return None
    action = own_flag.read_text()
    own_flag.unlink()
    return FaultAction(action or FaultAction.KILL)


def _perform_fault(action: FaultAction, flag: str) -> None:
    if action is FaultAction.RAISE:
        raise InjectedFault(flag)
    if action is FaultAction.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    frozen = Path(ARMED) / f"{STOPPED_PREFIX}{os.getpid()}"
    frozen.write_text(flag)
    # Directed at this thread: if another thread took the signal, this one could run on.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    frozen.unlink(missing_ok=True)
