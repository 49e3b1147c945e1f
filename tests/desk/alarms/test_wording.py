"""The words of the alarm pages."""

from __future__ import annotations

import pytest

from reviews.alarms import standing, wording
from reviews.choices import AlarmKind
from reviews.models import Alarm
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_text
from tests.reviews import states

LIST = "/alarms/?state=all"
STATES = [
    ("open", LIST, "alarm-status", "Open Unassigned"),
    ("acknowledged", LIST, "alarm-status", "Acknowledged by Sue Example"),
    ("closed", LIST, "alarm-status", "Resolved"),
    (
        "closed",
        "/alarms/",
        "no-alarms",
        "No open alarms. Counterseal knows of no unresolved guarantee violation.",
    ),
    (
        "open",
        "/alarms/?kind=twice",
        "no-alarms",
        "No matching alarms. Show all open alarms",
    ),
]
MESSAGES = [
    ("acknowledge", "Acknowledged. Others see that you are working on it."),
    ("close", "Resolved. Your note is in the audit log."),
]
TITLES = {
    AlarmKind.NEVER_EXECUTED: "Approved but never executed",
    AlarmKind.NOT_TAKEN_UP: "Approved but not started",
    AlarmKind.WITHOUT_GRANT: "Executed without a permit",
    AlarmKind.OTHER_BYTES: "Executed content differs from what was approved",
    AlarmKind.TWICE: "Executed more than once",
    AlarmKind.WITHOUT_VOTES: "Approved without the required votes",
    AlarmKind.LATE_REPORT: "Result reported too late",
    AlarmKind.DELIVERY_DEAD: "Webhook delivery failed",
    AlarmKind.INVALID_OUTCOME: "Outcome does not match its schema",
    AlarmKind.RESTORED: "The database is behind external systems",
    AlarmKind.PROMOTED: "A standby of the database took over",
    AlarmKind.UNDECIDABLE: "Nobody can decide a request",
    AlarmKind.STANDSTILL: "The worker is not running",
    AlarmKind.UNREADABLE: "Unreadable messages in the broker",
    AlarmKind.LOG_STALLED: "The audit log has stalled",
    AlarmKind.THRESHOLD: "A figure crossed its threshold",
}


def bring_to(state: str, gate: Gate) -> Alarm:
    alarm = states.open_alarm(gate)
    if state == "acknowledged":
        standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sue)
    if state == "closed":
        standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="asked again")
    return alarm


@pytest.mark.parametrize(("state", "path", "testid", "text"), STATES)
def test_the_list_names_the_state(
    gate: Gate, as_: SignIn, state: str, path: str, testid: str, text: str
) -> None:
    bring_to(state, gate)
    assert read_text(as_("sue").get(path), testid) == text


@pytest.mark.parametrize(("act", "text"), MESSAGES)
def test_an_act_is_confirmed(gate: Gate, as_: SignIn, act: str, text: str) -> None:
    alarm = bring_to("open", gate)
    url = f"/alarms/{alarm.pk}/{act}/"
    done = as_("sue").post(url, {"note": "asked again"}, follow=True)
    assert read_text(done, "message") == text


def test_every_kind_has_its_title() -> None:
    assert {kind: wording.describe_alarm(kind).title for kind in AlarmKind} == TITLES
