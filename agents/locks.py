"""The only place that locks the agents' rows: the thread, first of all locks; and what
is on its way to agents, in the order outcome, endpoint, letter, the places that an
agent's proposals named, the slow lane, an alarm."""

from __future__ import annotations

from django.db import connection
from django.db.models import QuerySet

from journal.errors import NotFound

from .models import Agent, Delivery, Endpoint, Thread

OUTCOME = 0x6F_75_74  # the first of two numbers, the second is of the outcome's name
LISTENING = 0x6C_69_73  # the same, of the agent's name
NAMED = 0x6E_61_6D  # the same, of the agent's name
_TAKE_BOTH = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
_TAKE_SHARED = "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))"
SLOW_LANE = 0x4C_65_74_74_65_72_73  # any number that no other advisory lock has


def thread(agent: Agent, name: str) -> Thread:
    """The agent's thread, locked until the transaction ends. Raises NotFound."""
    try:
        return (
            Thread.objects.select_related("agent")
            .select_for_update(of=("self",), no_key=True)
            .get(agent=agent, name=name)
        )
    except Thread.DoesNotExist:
        raise NotFound from None


def outcome(name: str) -> None:
    """Who promises letters of this outcome and who takes the agent's word that it has
    it go one after the other; or neither would see what the other writes, and the agent
    would be told of what it has. Caller holds a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_BOTH, [OUTCOME, name])


def listening(agent: Agent, *, shared: bool = False) -> None:
    """Who registers an endpoint, and who proposes (`shared`), go one after the other;
    or what is being proposed would be told to nobody. Caller holds a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_SHARED if shared else _TAKE_BOTH, [LISTENING, agent.slug])


def delivery(pk: str) -> Delivery:
    """A letter with its endpoint and agent, both rows locked: the endpoint first, for
    it is taken by whoever counts what is on the way to it. Raises NotFound."""
    known = Delivery.objects.filter(pk=pk).first()
    if known is None:
        raise NotFound
    endpoint = _endpoints().get(pk=known.endpoint_id)
    found = Delivery.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if found is None:  # forgotten meanwhile
        raise NotFound
    found.endpoint = endpoint
    return found


def _endpoints() -> QuerySet[Endpoint]:
    rows = Endpoint.objects.select_related("agent")
    return rows.select_for_update(of=("self",), no_key=True)


def deliveries(queryset: QuerySet[Delivery]) -> list[Delivery]:
    """These letters, locked in the order of their pk, their endpoints read only."""
    rows = queryset.select_related("endpoint__agent").order_by("pk")
    return list(rows.select_for_update(of=("self",), no_key=True))


def idle_threads(queryset: QuerySet[Thread], most: int) -> list[Thread]:
    """Lock these, and leave out what somebody else holds."""
    return list(
        queryset.select_for_update(of=("self",), no_key=True, skip_locked=True)[:most]
    )


def idle_deliveries(queryset: QuerySet[Delivery], most: int) -> list[Delivery]:
    """As many of these letters as nobody else has locked."""
    return list(queryset.select_for_update(of=("self",), skip_locked=True)[:most])


def lane(endpoint: Endpoint) -> None:
    """One letter at a time begins its way to all the places that proposals of one agent
    named; those that people registered need no more than their row. Caller holds a
    transaction and the endpoint."""
    if endpoint.by_proposal:
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_BOTH, [NAMED, endpoint.agent.slug])


def slow_lane() -> None:
    """One letter at a time begins its way to where letters fail or take long. Caller
    holds a transaction and the endpoint."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SLOW_LANE])
