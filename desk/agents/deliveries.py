"""The page models of webhook deliveries: endpoints, failed, waiting and recently
delivered deliveries, one delivery with its attempts; and who may see and manage them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, QuerySet
from django.urls import reverse

from agents.choices import DeliveryStatus
from agents.models import Agent, Delivery, Endpoint
from agents.schemas.webhooks import WebhookEventData
from agents.webhooks.trial import TrialResult
from journal.errors import NotFound, NotPermitted
from policies.models import Person
from reviews import permissions
from reviews.effects import wording
from reviews.roles import Permission

from ..components import navigation
from ..components.navigation import UpkeepTab

FAILURES, SHOWN = 50, 10
MAX_ATTEMPTS = 100
SWITCHED_ON_FIRST = F("endpoint__off_at").asc(nulls_first=True)
EVENT_WORDS = {
    "request.opened": "Approval requested",
    "request.escalated": "Request escalated",
    "proposal.settled": "Proposal resolved",
    "proposal.executed": "Proposal executed",
    "execution.unknown": "Unknown result",
}
STATUS_WORDS = {
    DeliveryStatus.WAITING: ("Pending", "wait"),
    DeliveryStatus.DELIVERED: ("Delivered", "ok"),
    DeliveryStatus.TAKEN: ("Acknowledged by the agent", "ok"),
    DeliveryStatus.DEAD: ("Failed", "warn"),
    DeliveryStatus.HELD: ("Not sent: invalid payload", "warn"),
}
FAILED_STATUSES = (DeliveryStatus.DEAD, DeliveryStatus.HELD)
ARRIVED_STATUSES = (DeliveryStatus.DELIVERED, DeliveryStatus.TAKEN)


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint, its state, and how many of its deliveries wait or failed. `failed`
    counts dead and held ones, `dead` only those that can be sent again together."""

    endpoint: Endpoint
    address: str
    word: str
    icon: str
    waiting: int
    failed: int
    dead: int
    may_manage: bool


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One webhook event for one endpoint. `again`: this person may send it again."""

    delivery: Delivery
    what: str
    word: str
    icon: str
    address: str
    waits: bool
    again: bool


@dataclass(frozen=True, slots=True)
class DeliveriesPage:
    """The page of all deliveries that this person may see."""

    places: list[EndpointRow]
    failed: list[DeliveryRow]
    waiting: list[DeliveryRow]
    lately: list[DeliveryRow]
    all_failed: int
    all_waiting: int


@dataclass(frozen=True, slots=True)
class EndpointTest:
    """What an endpoint answered to a test event."""

    endpoint: Endpoint
    result: TrialResult

    @property
    def address(self) -> str:
        return format_address(self.endpoint.url)

    @property
    def title(self) -> str:
        """What happened, in a sentence."""
        if self.result.status is None:
            return "No answer to the test event."
        took = self.result.milliseconds
        return f"The test event was answered with {self.result.status} in {took} ms."


def select_visible_endpoints(person: Person) -> QuerySet[Endpoint]:
    """Select the endpoints that this person may see: all of them when their role allows
    it, else those of their own agents."""
    endpoints = Endpoint.objects.select_related("agent__owner")
    if permissions.has_permission(person, Permission.SEE_DELIVERIES):
        return endpoints
    return endpoints.filter(agent__owner=person)


def may_manage(person: Person, agent: Agent) -> bool:
    """Whether this person may change the agent's endpoints and send deliveries again:
    its owner, and those whose role allows it."""
    owns = agent.owner_id == person.pk and person.is_active
    return owns or permissions.has_permission(person, Permission.MANAGE_ENDPOINTS)


def check_may_manage(person: Person, agent: Agent) -> None:
    """Raise NotPermitted unless this person may manage the agent's endpoints."""
    if not may_manage(person, agent):
        raise NotPermitted("Only the agent's owner or an administrator may do that.")


def may_read(person: Person, agent: Agent) -> bool:
    """Whether this person may see the agent's endpoints. Reviewers may not."""
    owns = agent.owner_id == person.pk
    return owns or permissions.has_permission(person, Permission.SEE_DELIVERIES)


def check_may_read(person: Person, agent: Agent) -> None:
    """Raise NotFound unless this person may see the agent's endpoints."""
    if not may_read(person, agent):
        raise NotFound


def check_may_manage_delivery(person: Person, delivery_id: str) -> None:
    """Raise NotFound for a delivery that this person may not see, NotPermitted for one
    that they may only see."""
    check_may_manage(person, load_delivery(person, delivery_id).endpoint.agent)


def load_managed_endpoint(person: Person, endpoint_id: str) -> Endpoint:
    """Return an endpoint that this person may manage. Raises NotFound for one that they
    may not see, NotPermitted for one that they may only see."""
    endpoint = select_visible_endpoints(person).filter(pk=endpoint_id).first()
    if endpoint is None:
        raise NotFound
    check_may_manage(person, endpoint.agent)
    return endpoint


def build_list_page(person: Person) -> DeliveriesPage:
    """Build the page of deliveries, in a bounded number of queries. Raises NotFound for
    a person who owns no agent and whose role does not allow it."""
    seen = select_visible_endpoints(person)
    sees_all = permissions.has_permission(person, Permission.SEE_DELIVERIES)
    if not sees_all and not Agent.objects.filter(owner=person).exists():
        raise NotFound
    deliveries = Delivery.objects.all() if sees_all else _select_deliveries(seen)
    shown = deliveries.select_related("endpoint__agent__owner").defer("payload")
    failed = shown.filter(status__in=FAILED_STATUSES)
    waiting = shown.filter(status=DeliveryStatus.WAITING)
    taken = shown.filter(status__in=ARRIVED_STATUSES)

    def build_rows(rows: QuerySet[Delivery]) -> list[DeliveryRow]:
        return [_build_delivery_row(person, row) for row in rows]

    return DeliveriesPage(
        places=list_endpoints(person, seen),
        failed=build_rows(failed.order_by("-ended_at")[:FAILURES]),
        waiting=build_rows(waiting.order_by(SWITCHED_ON_FIRST, "next_at")[:SHOWN]),
        lately=build_rows(taken.order_by("-ended_at")[:SHOWN]),
        all_failed=failed.count(),
        all_waiting=waiting.count(),
    )


def _select_deliveries(seen: QuerySet[Endpoint]) -> QuerySet[Delivery]:
    return Delivery.objects.filter(endpoint__in=seen.values("pk"))


def build_tabs(person: Person) -> list[UpkeepTab]:
    """Build the tabs. An agent's owner without a role for the other pages gets this one
    alone."""
    tabs = navigation.list_upkeep_tabs(person, navigation.DELIVERIES)
    return tabs or [UpkeepTab("Deliveries", reverse(navigation.DELIVERIES), True)]


def list_endpoints(person: Person, seen: QuerySet[Endpoint]) -> list[EndpointRow]:
    """List these endpoints, by agent, with the numbers of their waiting and failed
    deliveries."""
    ordered = list(seen.order_by("agent__slug", "by_proposal", "created_at"))
    counts = _count_deliveries(ordered)
    return [_build_endpoint_row(person, row, counts.get(row.pk, {})) for row in ordered]


def _count_deliveries(rows: Iterable[Endpoint]) -> dict[str, dict[str, int]]:
    counted = (
        Delivery.objects.filter(
            endpoint__in=[row.pk for row in rows],
            status__in=[*FAILED_STATUSES, "waiting"],
        )
        .values_list("endpoint", "status")
        .annotate(n=Count("pk"))
        .order_by()
    )
    counts: dict[str, dict[str, int]] = {}
    for endpoint, status, n in counted:
        counts.setdefault(endpoint, {})[status] = n
    return counts


def _build_endpoint_row(
    person: Person, row: Endpoint, counts: Mapping[str, int]
) -> EndpointRow:
    word, icon = _describe_endpoint(row)
    dead = counts.get("dead", 0)
    return EndpointRow(
        endpoint=row,
        address=format_address(row.url),
        word=word,
        icon=icon,
        waiting=counts.get("waiting", 0),
        failed=dead + counts.get("held", 0),
        dead=dead,
        may_manage=may_manage(person, row.agent),
    )


def _describe_endpoint(row: Endpoint) -> tuple[str, str]:
    if row.off_at is not None:
        gone = "Disabled: answered 410" if row.off_why == "gone" else "Disabled"
        return gone, "pause"
    if row.slow_since is not None:
        return "Enabled, last delivery failed", "warn"
    return "Enabled", "run"


def format_address(url: str) -> str:
    """Return the address without its query, which may be a secret."""
    address, mark, _ = url.partition("?")
    return f"{address}?…" if mark else address


def _build_delivery_row(person: Person, row: Delivery) -> DeliveryRow:
    status = DeliveryStatus(row.status)
    word, icon = STATUS_WORDS[status]
    return DeliveryRow(
        delivery=row,
        what=EVENT_WORDS.get(row.kind, row.kind),
        word=word,
        icon=icon,
        address=format_address(row.url),
        waits=status is DeliveryStatus.WAITING,
        again=status in FAILED_STATUSES and may_manage(person, row.endpoint.agent),
    )


def load_delivery(person: Person, delivery_id: str) -> Delivery:
    """Return one delivery. Raises NotFound for one that does not exist or that this
    person may not see."""
    deliveries = _select_deliveries(select_visible_endpoints(person)).select_related(
        "endpoint__agent__owner"
    )
    delivery = deliveries.filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFound
    return delivery


def build_delivery_context(person: Person, delivery: Delivery) -> dict[str, Any]:
    """The context of one delivery's page: its payload as facts, and its attempts."""
    return {
        "delivery": delivery,
        "row": _build_delivery_row(person, delivery),
        "tries": list(delivery.tries.order_by("-at")[:MAX_ATTEMPTS]),
        "facts": list(wording.flatten_value(_sort_payload(delivery.payload))),
        "upkeep": build_tabs(person),
    }


def _sort_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload's values in the order of the published schema, which JSONB
    does not keep. A payload that violates the schema is returned as it is."""
    data = payload.get("data")
    if not isinstance(data, dict):
        return dict(payload)
    known = {name: data[name] for name in WebhookEventData.model_fields if name in data}
    return {"type": payload.get("type"), **known, **data}
