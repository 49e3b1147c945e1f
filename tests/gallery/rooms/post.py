"""Letters to agents: where they go, what did not arrive, and what one of them says."""

from __future__ import annotations

from agents.models import Delivery
from agents.webhooks import delivery, endpoints, enqueue, lanes
from agents.webhooks.delivery import AttemptResult
from journal import clock
from journal.models import OutboxMessage
from journal.state_machine import PROPOSAL_TOLD
from reviews.models import Alarm
from tests.factories import decide
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage

POST, NOWHERE = Room("post"), Room("post-empty")
LETTERS, PLACES = "agents:deliveries", "agents:endpoints"
ENDPOINTS = "/agents/riley/endpoints/"
TAKEN, FAILS = AttemptResult(204), AttemptResult(500, "it answered 500", seconds=0.2)
GONE = AttemptResult(410, "it answered 410")


@POST.furnished
def furnish(stage: Stage) -> None:
    """An endpoint that takes its letters, one that fails, and one that is gone."""
    for path in ("hooks/holdpoint", "events?key=k3y", "old"):
        url = f"https://riley.example/{path}"
        endpoints.register_endpoint(agent=stage.agent, url=url, by=stage.owen)
    for _ in range(3):
        decide(stage.refund(), stage.rita, "reject", reason_code="duplicate")
    for message in OutboxMessage.objects.filter(topic=PROPOSAL_TOLD).order_by("pk"):
        enqueue.enqueue_deliveries(message=message)
    while letters := lanes.list_due_deliveries():
        for pk in letters:
            answer(Delivery.objects.get(pk=pk))
    dead = Delivery.objects.filter(status="waiting", url__contains="events").first()
    assert dead is not None
    Delivery.objects.filter(pk=dead.pk).update(
        next_at=clock.now(), give_up_at=clock.now()
    )
    answer(dead)


def answer(letter: Delivery) -> None:
    """As the letter's endpoint answers."""
    taken = delivery.claim_delivery(delivery_id=letter.pk)
    if taken is not None:
        kind = TAKEN if "hooks" in letter.url else FAILS
        kind = GONE if letter.url.endswith("old") else kind
        delivery.record_attempt(
            delivery_id=taken.pk, attempt=taken.attempts, answer=kind
        )


def one(status: str) -> str:
    letter = Delivery.objects.filter(status=status).order_by("-attempts").first()
    assert letter is not None
    return f"/deliveries/{letter.pk}/"


POST.page("list", LETTERS, "/deliveries/", "Send again", who="owen")
POST.page("list-auditor", LETTERS, "/deliveries/", "Not delivered", who="otto")
POST.page("list-administrator", LETTERS, "/deliveries/", "Switch on", who="adam")
POST.page("places", PLACES, ENDPOINTS, "New secret", who="owen")


@POST.scene("given-up", "agents:delivery", "Send again", who="owen")
def given_up(stage: Stage) -> str:
    return one("dead")


@POST.scene("given-up-alarm", "reviews:alarm", "Delivery", who="sue")
def given_up_alarm(stage: Stage) -> str:
    alarm = Alarm.objects.filter(kind="delivery_dead").latest("pk")
    return f"/alarms/{alarm.pk}/"


@POST.scene("waiting", "agents:delivery", "Next try", who="otto")
def waiting(stage: Stage) -> str:
    return one("waiting")


@POST.scene("delivered", "agents:delivery", "Taken, 204", who="otto")
def delivered(stage: Stage) -> str:
    return one("delivered")


@POST.scene("place-refused", PLACES, "This address is not public, and", who="owen")
def place_refused(stage: Stage) -> Sent:
    return Sent(ENDPOINTS, {"url": "http://10.0.0.1/hook"})


@POST.scene("secret", PLACES, "Copy its secret now.", who="owen")
def secret(stage: Stage) -> Sent:
    count = stage.agent.endpoints.count()
    return Sent(ENDPOINTS, {"url": f"https://riley.example/more-{count}"})


NOWHERE.page("list", LETTERS, "/deliveries/", "No letter waits.", who="owen")
NOWHERE.page("places", PLACES, ENDPOINTS, "No endpoint is registered.", who="owen")
