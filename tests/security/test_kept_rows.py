"""What carries authority or records an effect is neither deleted nor rewritten by who
can write the tables with every trigger on. Every table says which of the two it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from agents import keys, retention
from agents.models import AgentKey, IdempotencyKey
from journal import clock
from policies.models import StandingGrant
from reviews.choices import Scope
from reviews.grants import approvers
from reviews.models import ApprovalRequest, Grant, PersonalToken, Stop
from reviews.people import tokens
from reviews.stops import stops
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.standing_grants.allowing import allow_tags, issue, tag

pytestmark = pytest.mark.django_db

# The columns of a kept table that the product changes. Every other one is fixed.
CHANGING = {
    "agents_agent": "name owner_id tools risk_ceiling unattended version created_at"
    " daily_proposals daily_money",
    "agents_agentkey": "created_at last_used_at",
    "agents_acknowledgement": "",
    "agents_checkpoint": "blob",
    "agents_idempotencykey": "",
    "agents_settingschange": "status settled_by_id settled_at refusal",
    "agents_thread": "status result wrapped_key started_at finished_at",
    "journal_epoch": "",
    "journal_logperiod": "",
    "journal_logposition": "",
    "journal_logrecord": "",
    "journal_promotion": "",
    "policies_observation": "amount_minor currency at ran_by ran counts",
    "policies_person": "password last_login is_superuser username first_name last_name"
    " email is_staff is_active date_joined ceiling_minor ceiling_currency"
    " password_changed_at",
    "policies_policyversion": "status",
    "policies_provisioningtoken": "last_used_at",
    "policies_queue": "title",
    "policies_standinggrant": "",
    "policies_substitution": "",
    "policies_tool": "",
    "reviews_alarm": "status data opened_at last_seen_at times acknowledged_by_id"
    " acknowledged_at closed_by_id closed_at closed_how note",
    # A list hides a request from `closed_to`; the votes say who may not decide it.
    "reviews_approvalrequest": "status risk opened_at expires_at expires_at_most"
    " recall_until half_time_at reminded_at frozen_through frozen_for assignee_id"
    " returned_at message_count settled_at joined repeat_key rank supervisors_only"
    " closed_to canary canary_for amount_minor currency",
    "reviews_authoritychange": "status settled_by_id settled_at refusal",
    "reviews_batch": "status group formed_at closes_at settled_at digest"
    " stop_at_failure halted_at",
    "reviews_batchitem": "joined_at left_at",
    "reviews_canary": "inserted_at next_after ending ended_at verdict caught took_ms"
    " realism",
    "reviews_dataset": "status asked_at settled_by_id settled_at refusal key"
    " until_decision rows rows_in_all size counts problem finished_at",
    "reviews_decision": "",
    "reviews_defectchange": "status asked_at settled_by_id settled_at refusal",
    # The log has no record of these bytes under another proposal.
    "reviews_execution": "proposal_id status attempts lease_until retried_at due_at"
    " result result_shown result_digest code detail queued_at claimed_at redeem_digest"
    " began_at unknown_at asked ask_at finished_at looked_up audited_at canary",
    "reviews_grant": "proposal_id status canary",
    "reviews_incident": "at",
    "reviews_latereport": "",
    "reviews_lookup": "",
    "reviews_message": "",
    "reviews_note": "",
    "reviews_personaltoken": "name created_at",
    "reviews_practice": "defect started_at ending ended_at",
    "reviews_practiceitem": "defect verdict answered_at",
    "reviews_proposal": "priority has_listener traceparent canary created_at",
    # `text` and `answer` change once, when the retention rule removes them.
    "reviews_question": "status",
    "reviews_repair": "status settled_by answer",
    "reviews_requestversion": "",
    "reviews_reversal": "",
    "reviews_revision": "",
    "reviews_secondreview": "chosen_at due_at",
    "reviews_snapshot": "",
    "reviews_statereading": "",
    "reviews_stop": "",
}
# Tables that may lose rows, and why.
FREE = {
    "auth_group": "the four roles by name",
    "auth_group_permissions": "of Django",
    "auth_permission": "of Django",
    "agents_callback": "where an event goes",
    "agents_delivery": "what was sent; the log and the outbox have the event",
    "agents_deliveryattempt": "what was sent",
    "agents_endpoint": "where an event goes",
    "axes_accessattempt": "failed sign-ins, counted for minutes",
    "axes_accessattemptexpiration": "failed sign-ins",
    "axes_accessfailurelog": "failed sign-ins",
    "axes_accesslog": "sign-ins",
    "django_content_type": "of Django",
    "django_session": "a session that is gone is signed out",
    "guardian_groupobjectpermission": "unused",
    "guardian_userobjectpermission": "unused",
    "journal_heartbeat": "when a sweep ran last",
    "journal_host": "when a host wrote its note last",
    "journal_knownkey": "the id of a key that nothing needs is forgotten",
    "journal_logpayload": "erasing the text leaves the proofs valid",
    "journal_outboxmessage": "a promise that was kept is deleted",
    "policies_person_groups": "roles are given and taken",
    "policies_person_user_permissions": "unused",
    "policies_federatedidentity": "somebody's own; the log has each",
    "policies_recoverycode": "somebody's own; the log has what became of each",
    "policies_signin": "a line about a session, gone soon after it",
    "policies_passkey": "somebody's own; the log has its removal",
    "policies_totpdevice": "somebody's own; the log has its removal",
    "policies_provisionedgroup": "the provider's; the log has what became of it",
    "policies_provisionedmember": "groups are joined and left; the log has each",
    "policies_provisionedperson": "what the provider calls somebody",
    "policies_queuegrouppermission": "unused",
    "policies_queueuserpermission": "admissions are given and taken",
    "reviews_datasetpart": "a file is deleted after some days",
    "reviews_draft": "what somebody types",
    "reviews_drillsighting": "who saw a drill",
    "reviews_evidencefile": "unused ones are deleted; versions seal the hash of others",
    "reviews_evidencepicture": "drawn from a file, and erased with it",
    "reviews_export": "a copy of what the log holds",
    "reviews_exportpart": "a copy of what the log holds",
    "reviews_hold": "a claim on a request, for minutes",
    "reviews_metricday": "computed from other tables",
    "reviews_metricrollup": "computed from other tables",
    "reviews_notice": "what was sent",
    "reviews_notificationdrill": "a test of the notifications",
    "reviews_oncallshift": "a shift that has not begun may be cancelled",
    "reviews_preferences": "somebody's own",
    "reviews_pushsubscription": "somebody's own",
    "reviews_queuepreset": "what panels offer; the log has each change",
    "reviews_savedview": "somebody's own",
    "reviews_searchentry": "computed from revisions",
    "reviews_sighting": "what somebody has seen",
    "reviews_traceexport": "how far an export got",
}


def run(text: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(text, values)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def refuses(text: str, *values: Any) -> bool:
    try:
        run(text, *values)
    except IntegrityError as error:
        return getattr(error.__cause__, "sqlstate", "") == "23001"
    return False


def test_every_table_says_whether_its_rows_are_kept() -> None:
    models = [model for model in apps.get_models(True) if model._meta.managed]
    tables = {model._meta.db_table for model in models}
    assert not CHANGING.keys() & FREE.keys()
    assert tables == CHANGING.keys() | FREE.keys()


@pytest.mark.parametrize("table", sorted(CHANGING))
def test_a_kept_table_is_not_emptied(table: str) -> None:
    assert refuses(f"TRUNCATE {table} CASCADE")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = %s::regclass"
            " AND tgtype & 8 = 8 AND NOT tgisinternal AND tgenabled <> 'D'",
            [table],
        )
        assert cursor.fetchone()[0] >= 1


@pytest.mark.parametrize("table", sorted(CHANGING))
def test_every_column_of_a_kept_table_is_fixed_or_changes(table: str) -> None:
    """By the triggers: those of an UPDATE name their columns, or cover them all."""
    model = next(m for m in apps.get_models(True) if m._meta.db_table == table)
    columns = {str(field.column) for field in model._meta.concrete_fields}
    changing = set(CHANGING[table].split())
    assert changing <= columns
    assert columns - changing <= list_guarded_columns(table) | set(
        columns if covers_all(table) else ()
    )


def list_guarded_columns(table: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_trigger JOIN pg_attribute ON attrelid = tgrelid"
            " AND attnum = ANY(tgattr) WHERE tgrelid = %s::regclass"
            " AND tgname LIKE '%%_fixed'",
            [table],
        )
        return {name for (name,) in cursor.fetchall()}


def covers_all(table: str) -> bool:
    """A trigger of every UPDATE, which compares the columns itself."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = %s::regclass"
            " AND (tgname LIKE '%%_immutable' OR tgname = 'append_only'))",
            [table],
        )
        return bool(cursor.fetchone()[0])


def halted(gate: Gate) -> Stop:
    stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="Look first."
    )
    return Stop.objects.get()


def lifted(gate: Gate) -> Stop:
    row = halted(gate)
    return stops.lift_stop(stop_id=row.pk, person=gate.adam, reason="Looked at.")


def standing(gate: Gate) -> StandingGrant:
    allow_tags(gate, uses=3)
    row = issue(gate, tag(gate).request)
    tag(gate, "b")
    return row


def token(gate: Gate) -> PersonalToken:
    tokens.create_token(person=gate.rita, name="mine", days=7)
    return PersonalToken.objects.get()


def revoked_token(gate: Gate) -> PersonalToken:
    row = token(gate)
    tokens.revoke_token(person=gate.rita, token_id=row.pk)
    return row


def agent_key(gate: Gate) -> AgentKey:
    keys.issue_key(agent=gate.agent, by=gate.owen)
    return AgentKey.objects.get(agent=gate.agent)


def pending(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent, amount="620.00").request


REWRITES: list[tuple[Callable[[Gate], Any], str]] = [
    (states.live, "expires_at = expires_at + interval '1 day'"),
    (states.live, "action_hash = 'sha256:other'"),
    (states.live, "issued_at = issued_at + interval '1 day'"),
    (states.live, "not_before = now() - interval '1 day'"),
    (states.live, "standing_grant_id = 'sg-other'"),
    (states.queued, "idempotency_key = 'other'"),
    (states.claimed, "fence = 0"),
    (standing, "uses = 0"),
    (standing, "expires_at = expires_at + interval '1 day'"),
    (pending, "tier = 'approve'"),
    (pending, "action_hash = 'sha256:other'"),
    (pending, "version = 0"),
    (pending, "agent = 'other'"),
    (lambda gate: pending(gate).proposal, "barred = '{}'"),
    (lambda gate: pending(gate).proposal, "on_behalf_of = '[1]'"),
    (pending, "barred = '{}'"),
    (lambda gate: pending(gate).sealed, "steps = '[]'"),
    (halted, "key = 'other'"),
    (halted, "mode = 'paused'"),
    (halted, "at = now() - interval '1 day'"),
    (halted, "lifted_at = now(), lifted_by = 'u-nobody'"),
    (lifted, "lifted_by = 'u-other'"),
    (states.open_alarm, "subject = 'other'"),
    (states.open_alarm, "kind = 'twice'"),
    (token, "expires_at = expires_at + interval '1 day'"),
    (token, "digest = 'other'"),
    (revoked_token, "revoked_at = NULL"),
    (agent_key, "scopes = '{}'"),
    (lambda gate: gate.agent, "slug = 'other'"),
    (lambda gate: gate.rita, "public_id = 'u-other'"),
]


@pytest.mark.parametrize(("reach", "change"), REWRITES, ids=[c for _, c in REWRITES])
def test_what_carries_authority_is_not_rewritten(
    gate: Gate, reach: Callable[[Gate], Any], change: str
) -> None:
    row = reach(gate)
    if change.startswith("barred"):
        worlds.rewrite(type(row), row.pk, barred=["u-somebody"])
    where = f"{row._meta.pk.column} = %s"
    assert refuses(f"UPDATE {row._meta.db_table} SET {change} WHERE {where}", row.pk)


DELETED: list[Callable[[Gate], Any]] = [
    states.queued,
    states.live,
    states.open_alarm,
    states.decided_batch,
    halted,
    standing,
    token,
    agent_key,
    pending,
    lambda gate: pending(gate).proposal,
    lambda gate: gate.rita,
]


@pytest.mark.parametrize("reach", DELETED)
def test_what_carries_authority_is_not_deleted(
    gate: Gate, reach: Callable[[Gate], Any]
) -> None:
    row = reach(gate)
    table, key = row._meta.db_table, row._meta.pk.column
    assert refuses(f"DELETE FROM {table} WHERE {key} = %s", row.pk)


def test_a_stop_that_nobody_may_delete_stays_in_force(gate: Gate) -> None:
    row = halted(gate)
    assert refuses("DELETE FROM reviews_stop WHERE key = %s", "riley")
    assert refuses("DELETE FROM policies_observation")
    assert stops.find_stop_mode("riley", "t-1", "pay") == row.mode


def test_a_window_may_be_shortened(gate: Gate) -> None:
    grant = states.live(gate)
    Grant.objects.filter(pk=grant.pk).update(expires_at=clock.now())
    decide(propose(gate.agent, customer="C-2").request, gate.rita)
    assert not approvers.without_votes(ApprovalRequest.objects.all())


def test_retention_deletes_the_keys_that_nothing_waits_for(gate: Gate) -> None:
    pending(gate)
    stored = IdempotencyKey.objects
    assert refuses("DELETE FROM agents_idempotencykey")
    assert retention.delete_old_keys() == 0
    old = clock.now() - timedelta(days=101)
    worlds.rewrite(IdempotencyKey, stored.get().pk, created_at=old)
    assert refuses("UPDATE agents_idempotencykey SET created_at = now()")
    assert retention.delete_old_keys() == 1
    assert not stored.exists()


def test_only_the_answer_of_a_refused_call_is_replaced(gate: Gate) -> None:
    """Nothing was authorised by it; any other answer stands for good."""
    replace = (
        "UPDATE agents_idempotencykey SET proposal = 'p-2', refused_under = 'x',"
        " created_at = statement_timestamp() WHERE agent_id = %s"
    )
    propose(gate.agent, "unknown")
    assert not refuses(replace, gate.agent.pk)
    assert refuses("UPDATE agents_idempotencykey SET created_at = '2020-01-01'")
    worlds.rewrite(
        IdempotencyKey, IdempotencyKey.objects.get().pk, refused_under="", body={}
    )
    assert refuses(replace, gate.agent.pk)
