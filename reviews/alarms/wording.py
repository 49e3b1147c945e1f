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
        "Approved, and never executed",
        "People said yes, and it did not run before its permission ended. Nothing was "
        "changed in the other system, and whoever relies on it may not know.",
        "See why it did not run. If it is still wanted, ask the agent to propose it "
        "again; the old approval cannot be used.",
    ),
    AlarmKind.WITHOUT_GRANT: AlarmText(
        "Executed without a permission",
        "Something says that this effect happened, and no permission was taken for it.",
        "Stop the agent, look in the other system whether it happened, and undo it if "
        "it must not stand.",
    ),
    AlarmKind.OTHER_BYTES: AlarmText(
        "Executed with other content than was granted",
        "What was reported or stored is not the exact content that people approved.",
        "Compare what happened in the other system with the approved arguments, and "
        "stop the tool or the agent until you know why they differ.",
    ),
    AlarmKind.TWICE: AlarmText(
        "Executed more than once",
        "Two successes were reported under one permission, or the other system counts "
        "more than one effect under our reference.",
        "Count the effects in the other system, reverse what is too many, and keep the "
        "tool stopped until you know how it happened.",
    ),
    AlarmKind.WITHOUT_VOTES: AlarmText(
        "Approved without its votes",
        "The request stands as approved, but the database does not hold the votes that "
        "its steps ask for. Holdpoint runs nothing on such an approval.",
        "Recall the request, so that it is asked again. Compare it with the audit log "
        "to find out what changed it, and stop the agent until you know.",
    ),
    AlarmKind.LATE_REPORT: AlarmText(
        "Reported too late",
        "What became of this effect was reported when the report could no longer be "
        "relied on: another attempt, a person or the clock had been faster.",
        "Compare the report with what is recorded. If they disagree, look in the other "
        "system.",
    ),
    AlarmKind.DELIVERY_DEAD: AlarmText(
        "An outcome could not be delivered",
        "The agent's address did not take the outcome for as long as it was tried.",
        "Ask the agent's owner to mend the address, then have it delivered again.",
    ),
    AlarmKind.INVALID_OUTCOME: AlarmText(
        "An outcome does not fit its description",
        "What would have been told to the agent is not what the API promises, so it "
        "was held back.",
        "Report it to whoever runs Holdpoint, with the facts below.",
    ),
    AlarmKind.RESTORED: AlarmText(
        "The database is older than the world",
        "It was restored from a backup: effects may have happened that it does not "
        "know of.",
        "Settle what is listed there before anything new is allowed to run.",
    ),
    AlarmKind.UNDECIDABLE: AlarmText(
        "Nobody can decide a request",
        "It waits for approvals that nobody may give: too few people are left who "
        "decide in its queue, in the role and up to the amount that it needs.",
        "Have an administrator admit somebody to its queue, return it with guidance "
        "where it was escalated, or reject it. Otherwise it expires.",
    ),
    AlarmKind.STANDSTILL: AlarmText(
        "The worker stands still",
        "Approved actions are not being executed, or background work such as deadlines "
        "does not run. Nothing is lost: it goes on when the worker does.",
        "Have whoever operates Holdpoint look at the worker, its queues and the "
        "broker. The alarm closes itself when everything runs again.",
    ),
    AlarmKind.UNREADABLE: AlarmText(
        "The broker held messages that could not be read",
        "Workers dropped them and went on. Holdpoint never writes such messages: "
        "somebody else can write to the broker. Nothing was executed because of them.",
        "Have whoever operates Holdpoint find out who can reach the broker, and change "
        "its password.",
    ),
}


def describe_alarm(kind: str) -> AlarmText:
    return ALARM_TEXTS[kind]
