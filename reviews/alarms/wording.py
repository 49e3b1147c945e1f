"""The text of each kind of alarm: what it says, what it means and what to do. It holds
no words of a person or an agent."""

from __future__ import annotations

from typing import NamedTuple

from reviews.choices import AlarmKind


class AlarmText(NamedTuple):
    """`title` names one alarm, `means` explains it, `do` says what to do next."""

    title: str
    means: str
    do: str


ALARM_TEXTS: dict[str, AlarmText] = {
    AlarmKind.NEVER_EXECUTED: AlarmText(
        "Approved but never executed",
        "People approved this action, but it did not run before its permit expired. "
        "Nothing was changed in the other system.",
        "Find out why it did not run. If it is still needed, ask the agent to propose "
        "it again; the old approval cannot be used.",
    ),
    AlarmKind.NOT_TAKEN_UP: AlarmText(
        "Approved but not started",
        "People approved this action, and it has not started: the agent has not "
        "used its permit, or the worker has not started it. Nothing was executed.",
        "Check whether the agent runs and resumes its run, or whether the worker runs. "
        "When the permit expires, people must approve the action again.",
    ),
    AlarmKind.WITHOUT_GRANT: AlarmText(
        "Executed without a permit",
        "This action was reported as executed, but no permit was used for it.",
        "Stop the agent, check in the other system whether it happened, and reverse it "
        "if necessary.",
    ),
    AlarmKind.OTHER_BYTES: AlarmText(
        "Executed content differs from what was approved",
        "What was reported or stored is not the exact content that people approved.",
        "Compare what happened in the other system with the approved arguments, and "
        "stop the tool or the agent until you know why they differ.",
    ),
    AlarmKind.TWICE: AlarmText(
        "Executed more than once",
        "Two successes were reported for one permit, or the other system counts more "
        "than one effect under Counterseal's reference.",
        "Count the effects in the other system, reverse the extra ones, and keep the "
        "tool stopped until you know how it happened.",
    ),
    AlarmKind.WITHOUT_VOTES: AlarmText(
        "Approved without the required votes",
        "The request is marked as approved, or a standing grant stands for its "
        "approval, but a vote or the grant is missing, or it was written into the "
        "database past Counterseal. Counterseal does not execute such an approval.",
        "Undo the approval, so that people decide again. Compare the request with the "
        "audit log to find out what changed it, and stop the agent until you know.",
    ),
    AlarmKind.LATE_REPORT: AlarmText(
        "Result reported too late",
        "The result of this action was reported when the report could no longer be "
        "relied on: another attempt, a person or the deadline came first.",
        "Compare the report with the recorded result. If they disagree, check the "
        "other system.",
    ),
    AlarmKind.DELIVERY_DEAD: AlarmText(
        "Webhook delivery failed",
        "The agent's endpoint did not accept this event during the retry period.",
        "Ask the agent's owner to fix the endpoint and then to choose Resend on the "
        "delivery's page.",
    ),
    AlarmKind.INVALID_OUTCOME: AlarmText(
        "Outcome does not match its schema",
        "The outcome for the agent is not in the form that the API promises, so "
        "Counterseal did not send it.",
        "Report this to the operator of Counterseal, with the facts below.",
    ),
    AlarmKind.RESTORED: AlarmText(
        "The database is behind external systems",
        "It was restored from a backup: actions may have happened that it does not "
        "know of.",
        "Open Restored database, compare the database with the other systems, and "
        "confirm. Nothing runs until two supervisors or administrators have confirmed.",
    ),
    AlarmKind.PROMOTED: AlarmText(
        "A standby of the database took over",
        "Every host found its newest record in it, and the former server had waited "
        "for a standby with each change: nothing was lost, and work continued.",
        "Have the operator of Counterseal check that the former server is off and that "
        "the new one has a standby again. Until then another failure stops everything.",
    ),
    AlarmKind.UNDECIDABLE: AlarmText(
        "Nobody can decide a request",
        "It needs approvals that nobody can give: too few people in its queue have the "
        "required role and approval limit.",
        "Ask an administrator to admit someone to its queue. Or reject it yourself, or "
        "return it with guidance if it was escalated. Otherwise it expires.",
    ),
    AlarmKind.STANDSTILL: AlarmText(
        "The worker is not running",
        "Approved actions are not being executed, or background work such as deadlines "
        "has stopped. Nothing is lost: the work continues when the worker runs again.",
        "Have the operator of Counterseal check the worker, its queues and the broker. "
        "The alarm is resolved automatically when everything runs again.",
    ),
    AlarmKind.UNREADABLE: AlarmText(
        "Unreadable messages in the broker",
        "Workers dropped them and continued. Counterseal never writes such messages: "
        "someone else can write to the broker. Nothing was executed because of them.",
        "Have the operator of Counterseal find out who can reach the broker, and "
        "change its password.",
    ),
    AlarmKind.LOG_STALLED: AlarmText(
        "The audit log has stalled",
        "New records get no number, because an older database transaction is still "
        "open. Actions continue, and nothing is lost, but these records have no fixed "
        "order yet.",
        "Have the operator of Counterseal end that transaction. The facts below name "
        "its session. The alarm is resolved automatically when the log has caught up.",
    ),
    AlarmKind.THRESHOLD: AlarmText(
        "A figure crossed its threshold",
        "A rate of the statistics is above or below the threshold that the policy sets "
        "for this tool and risk level. Nothing was blocked because of it.",
        "Look at the statistics of the tool. A rule may be too broad, people may "
        "approve without looking, or the agent's proposals may be weak. The alarm is "
        "resolved automatically when the rate is back within its threshold.",
    ),
}


def describe_alarm(kind: str) -> AlarmText:
    return ALARM_TEXTS[kind]
