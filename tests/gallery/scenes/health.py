"""Health: sweeps that run without a worker in the broker, and webhooks that failed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agents.models import Delivery, Endpoint
from hitl.celery import SWEEPS
from journal import clock, heartbeats
from reviews import standstills
from reviews.models import Notice
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate

if TYPE_CHECKING:
    from playwright.sync_api import Page

HEALTH = SceneGroup("health", shows=("health", "channels"))


@HEALTH.preparation
def fail_delivery(gate: StoreGate) -> None:
    """Heartbeats of all sweeps, and a webhook that nobody took."""
    for name in (*SWEEPS, standstills.PULSE_TASK, *standstills.EFFECT_TASKS):
        heartbeats.record_heartbeat(name)
    now = clock.now()
    endpoint = Endpoint.objects.create(
        agent=gate.agent, url="https://agent.example/", secret=b"-", created_at=now
    )
    delivery = Delivery.objects.create(
        event="e-1",
        kind="proposal.settled",
        proposal="p-1",
        thread="t-1",
        endpoint=endpoint,
        url=endpoint.url,
        payload={},
        status="waiting",
        next_at=now,
        give_up_at=now,
        created_at=now,
    )
    Delivery.objects.filter(pk=delivery.pk).update(status="dead", ended_at=now)


def fail_messages(gate: StoreGate) -> str:
    """A mail that arrived and a later one that the server refused."""
    now = clock.now()
    request = gate.refund()
    for kind, more in (
        ("half_time", {"sent_at": now - timedelta(hours=3)}),
        ("due_soon", {"error": "the mail server refused it", "attempts": 2}),
    ):
        Notice.objects.create(
            person=gate.rita, request=request, kind=kind, at=now, due_at=now, **more
        )
    return "/channels/"


def open_settings(gate: StoreGate, page: Page) -> None:
    page.locator("summary", has_text="settings").click()


HEALTH.add("page", "none reports", "/health/", "alma")
HEALTH.add("channels", "the mail server refused it", fail_messages, "alma")
HEALTH.add("settings", "not set, hidden", "/health/", "otto", act=open_settings)
