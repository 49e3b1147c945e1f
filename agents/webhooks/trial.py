"""A test event: one signed call of an endpoint at a person's wish, and what the
endpoint answered. It is no delivery: nothing is retried, and the endpoint's lane is
untouched."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents.models import Endpoint
from journal import canonical, clock, ids, log
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews.outbound import webhooks

from . import endpoints

TEST_TYPE = "endpoint.test"
LONGEST_SECONDS = 5.0  # a person waits for it
MAX_SHOWN = 300  # bytes of the answer


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How an endpoint answered a test event. `status` is None without an answer, and
    `error` then says why; `start` is the beginning of the answer's body: untrusted."""

    event: str
    milliseconds: int
    status: int | None = None
    error: str = ""
    start: str = ""

    @property
    def well(self) -> bool:
        """Whether the endpoint answered 2xx."""
        return self.status is not None and 200 <= self.status < 300


def send_test_event(*, endpoint: Endpoint, by: Person) -> TrialResult:
    """Send a signed test event to an endpoint, with the checks of a delivery, and log
    it. Caller holds no transaction, and has checked that the person may manage the
    endpoint."""
    result = _send(endpoint)
    _record_test(endpoint=endpoint, result=result, by=by)
    return result


def _send(endpoint: Endpoint) -> TrialResult:
    event, began = ids.new("m"), time.monotonic()
    reply, error = None, ""
    try:
        reply = webhooks.send_webhook_event(
            endpoint.url,
            canonical.encode(build_test_payload(endpoint)),
            message=event,
            secrets=endpoints.list_secrets(endpoint, clock.now()),
            timeout=min(settings.COUNTERSEAL.http_timeout, LONGEST_SECONDS),
            read=MAX_SHOWN,
        )
    except webhooks.NotAllowed as refused:
        error = f"Nothing was sent: {refused}."
    except webhooks.NotSent as unsent:
        error = f"Nothing was sent: {unsent}."
    except webhooks.NoUsableAnswer as unanswered:
        error = f"The event was sent: {unanswered}."
    spent = round((time.monotonic() - began) * 1000)
    if reply is None:
        return TrialResult(event, spent, error=error)
    start = reply.body.decode("utf-8", "replace")
    return TrialResult(event, spent, reply.status, start=start)


def build_test_payload(endpoint: Endpoint) -> dict[str, Any]:
    """The body of a test event. It names no proposal, so a receiver has nothing to
    do."""
    return {
        "type": TEST_TYPE,
        "timestamp": clock.format_instant(clock.now()),
        "data": {
            "endpoint": endpoint.pk,
            "outcome": None,
            "proposal": "",
            "thread": "",
            "status": "",
        },
    }


@operation(entry="send_test_event", logs="endpoint.tested")
def _record_test(*, endpoint: Endpoint, result: TrialResult, by: Person) -> None:
    log.append(
        "endpoint.tested",
        actor=build_actor(by),
        at=clock.now(),
        agent=endpoint.agent.slug,
        data={"endpoint": endpoint.pk, "code": str(result.status or "no_answer")},
    )
