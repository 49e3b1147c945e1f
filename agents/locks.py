"""All locks on rows of this package. The thread is the first of all locks, after the
idempotency key of a call that is judged again; an agent's daily limit is the second.
Webhook deliveries lock in the order outcome, endpoint, delivery, the agent's callback
lane, the slow lane, alarm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from journal.errors import NotFound
from journal.prepared_queries import Parameter, PreparedQuery
from journal.statements import Statement
from reviews.requests import repeats
from reviews.requests.repeats import EarlierProposals

from .choices import SettingsStatus
from .models import (
    Agent,
    Delivery,
    Endpoint,
    IdempotencyKey,
    SettingsChange,
    Thread,
)

# Advisory locks have two keys: one of these numbers, and the hash of a name.
OUTCOME_LOCK = 0x6F_75_74  # with the outcome's id
LISTENERS_LOCK = 0x6C_69_73  # with the agent's slug
DAILY_LOCK = 0x64_61_79  # with the agent's slug
CALLBACK_LANE_LOCK = 0x6E_61_6D  # with the agent's slug
_LOCK_EXCLUSIVE = Statement(
    "SELECT pg_advisory_xact_lock(%(kind)s::integer, hashtext(%(name)s))"
)
_LOCK_SHARED = Statement(
    "SELECT pg_advisory_xact_lock_shared(%(kind)s::integer, hashtext(%(name)s))"
)
_LOCK_SHARED_AND_FIND = Statement(f"""
SELECT pg_advisory_xact_lock_shared(%(kind)s::integer, hashtext(%(name)s)),
    {repeats.COLUMNS}
""")
SLOW_LANE_LOCK = 0x4C_65_74_74_65_72_73  # a single key that no other advisory lock uses


_THREAD = PreparedQuery(
    lambda: Thread.objects.select_for_update(no_key=True).filter(
        agent_id=Parameter("agent"), name=Parameter("name")
    )
)


def lock_thread(agent: Agent, name: str) -> Thread:
    """Return the agent's thread, locked until the transaction ends. Raises NotFound."""
    thread = _THREAD.fetch_first(agent=agent.pk, name=name)
    if thread is None:
        raise NotFound
    thread.agent = agent
    return thread


_KEY = PreparedQuery(
    lambda: IdempotencyKey.objects.select_for_update(no_key=True).filter(
        agent_id=Parameter("agent"), key=Parameter("key")
    )
)


def lock_key(agent: Agent, key: str) -> IdempotencyKey | None:
    """Return the row of a used idempotency key, locked until the transaction ends, or
    None. Caller holds no other lock."""
    return _KEY.fetch_first(agent=agent.pk, key=key)


def lock_outcome(name: str) -> None:
    """Serialise the creation of this outcome's deliveries with its acknowledgement.
    Without the lock neither would see the other's rows, and the agent would be sent an
    outcome that it has acknowledged. Caller holds a transaction."""
    _LOCK_EXCLUSIVE.execute(kind=OUTCOME_LOCK, name=name)


def lock_listeners(agent: Agent, *, shared: bool = False) -> None:
    """Serialise the registration of an endpoint with the agent's proposals, which take
    the lock `shared`. Without it an endpoint would miss the events of a proposal that
    is not committed yet. Caller holds a transaction."""
    statement = _LOCK_SHARED if shared else _LOCK_EXCLUSIVE
    statement.execute(kind=LISTENERS_LOCK, name=agent.slug)


def lock_daily_limit(agent: Agent) -> None:
    """Serialise the proposals of an agent that has a daily limit of proposals or of
    money, so that no two count the same. Caller holds the thread's lock and no lock
    after it."""
    _LOCK_EXCLUSIVE.execute(kind=DAILY_LOCK, name=agent.slug)


def lock_listeners_and_find_earlier(
    agent: Agent, action: Mapping[str, Any]
) -> EarlierProposals:
    """Take the shared lock of `lock_listeners`, and find the earlier proposals of an
    action, which `repeats.build_action_values` identifies. Caller holds the thread's
    lock, so no other call adds one."""
    _, open_request, rejected = _LOCK_SHARED_AND_FIND.fetch_one(
        kind=LISTENERS_LOCK, name=agent.slug, **action
    )
    return EarlierProposals(open_request or "", rejected or "")


def lock_delivery(pk: str) -> Delivery:
    """Return a delivery with its endpoint and agent; the endpoint's row is locked, then
    the delivery's. The endpoint comes first because its lock serialises the count of
    what is in flight to it. Raises NotFound."""
    known = Delivery.objects.filter(pk=pk).first()
    if known is None:
        raise NotFound
    endpoints = Endpoint.objects.select_related("agent")
    endpoints = endpoints.select_for_update(of=("self",), no_key=True)
    endpoint = endpoints.get(pk=known.endpoint_id)
    delivery = Delivery.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if delivery is None:  # retention deleted it in between
        raise NotFound
    delivery.endpoint = endpoint
    return delivery


def lock_deliveries(queryset: QuerySet[Delivery]) -> list[Delivery]:
    """Return these deliveries, locked in the order of their pk. Their endpoints are
    read but not locked."""
    rows = queryset.select_related("endpoint__agent").order_by("pk")
    return list(rows.select_for_update(of=("self",), no_key=True))


def lock_idle_threads(queryset: QuerySet[Thread], most: int) -> list[Thread]:
    """Lock at most `most` of these threads; skip those that are locked already."""
    return list(
        queryset.select_for_update(of=("self",), no_key=True, skip_locked=True)[:most]
    )


def lock_idle_deliveries(queryset: QuerySet[Delivery], most: int) -> list[Delivery]:
    """Lock at most `most` of these deliveries; skip those that are locked already."""
    return list(queryset.select_for_update(of=("self",), skip_locked=True)[:most])


def lock_settings_change(pk: int) -> SettingsChange:
    """Lock a change of an agent's settings, so that one person answers it. Raises
    NotFound."""
    rows = SettingsChange.objects.select_related("agent", "asked_by", "settled_by")
    row = rows.select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
    if row is None:
        raise NotFound
    return row


def lock_open_changes(agent: Agent) -> list[SettingsChange]:
    """Lock the change of the agent's settings that waits for an answer, if any, before
    the agent's row is written."""
    rows = SettingsChange.objects.select_related("agent").filter(
        agent=agent, status=SettingsStatus.PROPOSED
    )
    return list(rows.select_for_update(of=("self",), no_key=True))


def lock_callback_lane(endpoint: Endpoint) -> None:
    """Serialise the start of attempts to all callback addresses of one agent. For a
    registered endpoint the lock on its row is enough, and this does nothing. Caller
    holds a transaction and the endpoint."""
    if endpoint.by_proposal:
        _LOCK_EXCLUSIVE.execute(kind=CALLBACK_LANE_LOCK, name=endpoint.agent.slug)


def lock_slow_lane() -> None:
    """Serialise the start of attempts to slow endpoints, of all agents together. Caller
    holds a transaction and the endpoint."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SLOW_LANE_LOCK])
