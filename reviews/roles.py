"""What each role lets a person do apart from deciding."""

from __future__ import annotations

from enum import StrEnum

from policies.choices import Role


class Permission(StrEnum):
    """What a role lets a person do apart from deciding."""

    SEE_ALL = "see_all"
    SEE_LOG = "see_log"
    EXPORT = "export"
    PAUSE = "pause"
    STOP = "stop"
    STOP_ALL = "stop_all"
    LIFT = "lift"
    SETTLE_UNKNOWN = "settle_unknown"
    SEE_POLICIES = "see_policies"
    SEE_STATISTICS = "see_statistics"
    SEE_OWN_STATISTICS = "see_own_statistics"  # of the agents that a person owns
    SEE_ALARMS = "see_alarms"
    ANSWER_ALARMS = "answer_alarms"
    SEE_DELIVERIES = "see_deliveries"  # of every agent; owners see their own agents'
    MANAGE_ENDPOINTS = "manage_endpoints"
    PLAN_ON_CALL = "plan_on_call"  # the rota of a queue, and its drills
    DECLARE = "declare"  # an incident, under which deadlines stand still
    REVOKE = "revoke"  # what a reviewer approved and has not run
    PROPOSE_REPAIR = "propose_repair"
    CONFIRM_REPAIR = "confirm_repair"  # of another role than who proposes one
    MANAGE_DATASETS = "manage_datasets"  # ask for one, and answer another's
    MANAGE_DEFECTS = "manage_defects"  # see the library, and change it with another
    ARCHIVE = "archive"  # old periods of the log, with another
    SEE_HEALTH = "see_health"  # servers, workers and settings
    SEE_PEOPLE = "see_people"  # every account, and who changed what it may do
    MANAGE_PEOPLE = "manage_people"
    MANAGE_AGENTS = "manage_agents"  # owners manage the keys of their own
    REVEAL = "reveal"  # what the schema marks sensitive, one value at a time


ROLES: dict[Role, frozenset[Permission]] = {
    Role.REVIEWER: frozenset({Permission.PAUSE, Permission.SEE_POLICIES}),
    Role.SUPERVISOR: frozenset(
        {
            Permission.SEE_ALL,
            Permission.SEE_LOG,
            Permission.SEE_DELIVERIES,
            Permission.PAUSE,
            Permission.STOP,
            Permission.LIFT,
            Permission.PLAN_ON_CALL,
            Permission.DECLARE,
            Permission.REVOKE,
            Permission.SETTLE_UNKNOWN,
            Permission.PROPOSE_REPAIR,
            Permission.SEE_ALARMS,
            Permission.ANSWER_ALARMS,
            Permission.SEE_POLICIES,
            Permission.SEE_STATISTICS,
            Permission.REVEAL,
        }
    ),
    Role.ADMINISTRATOR: frozenset(
        {
            Permission.SEE_ALL,
            Permission.SEE_LOG,
            Permission.SEE_DELIVERIES,
            Permission.MANAGE_ENDPOINTS,
            Permission.SEE_PEOPLE,
            Permission.SEE_HEALTH,
            Permission.MANAGE_PEOPLE,
            Permission.MANAGE_AGENTS,
            Permission.PAUSE,
            Permission.STOP,
            Permission.STOP_ALL,
            Permission.ARCHIVE,
            Permission.CONFIRM_REPAIR,
            Permission.MANAGE_DATASETS,
            Permission.MANAGE_DEFECTS,
            Permission.LIFT,
            Permission.DECLARE,
            Permission.REVOKE,
            Permission.SEE_ALARMS,
            Permission.SEE_POLICIES,
            Permission.SEE_STATISTICS,
        }
    ),
    Role.AUDITOR: frozenset(
        {
            Permission.SEE_ALL,
            Permission.SEE_LOG,
            Permission.SEE_DELIVERIES,
            Permission.EXPORT,
            Permission.SEE_PEOPLE,
            Permission.SEE_HEALTH,
            Permission.SEE_ALARMS,
            Permission.SEE_POLICIES,
            Permission.SEE_STATISTICS,
        }
    ),
    Role.OWNER: frozenset({Permission.SEE_OWN_STATISTICS}),
}
