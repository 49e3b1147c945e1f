"""`REDIS_URL` as Celery wants it, and the settings that make Celery a mere nudge."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from kombu.entity import Queue
from kombu.utils.scheduling import round_robin_cycle

# A dead broker costs a web request this much at most; the sweep finds the row anyway.
CONNECT_TIMEOUT_S = 1
SOCKET_TIMEOUT_S = 2

# Six queues, so that no effect and no sweep waits behind letters or a service that is
# only asked, no mail behind an agent's server, no agent behind people's mails, and no
# letter that is written behind all that are to be. A worker serves all of them unless
# `-Q` says otherwise.
EFFECTS, SWEEPS = "effects", "celery"
INQUIRIES, LETTERS = "inquiries", "letters"
OUTCOMES, HOOKS = "outcomes", "hooks"
QUEUES = tuple(map(Queue, (EFFECTS, SWEEPS, INQUIRIES, LETTERS, OUTCOMES, HOOKS)))
PATIENT = frozenset({INQUIRIES, LETTERS, OUTCOMES, HOOKS})
ROUTES = {
    "reviews.tasks.execute": {"queue": EFFECTS},
    "reviews.tasks.run_execution": {"queue": EFFECTS},
    "reviews.tasks.pulse_effects": {"queue": EFFECTS},
    "reviews.tasks.audit_one": {"queue": INQUIRIES},
    "reviews.tasks.look_up_one": {"queue": INQUIRIES},
    "reviews.tasks.mail_*": {"queue": LETTERS},
    "reviews.tasks.send_*": {"queue": LETTERS},
    "reviews.tasks.write_export": {"queue": LETTERS},
    "agents.tasks.tell": {"queue": OUTCOMES},
    "agents.tasks.post": {"queue": HOOKS},
}


class UrgentFirst(round_robin_cycle):
    """In which order a worker that is free looks into its queues: effects and sweeps by
    turns, and only when both are empty the others by turns. A worker that has more to
    do than it can recovers first, and asks and tells later."""

    def consume(self, n: int) -> list[str]:
        return sorted(self.items[:n], key=PATIENT.__contains__)


def broker_url(redis_url: str) -> str:
    """kombu's spelling: `unix:///path?db=1` is `redis+socket:///path?virtual_host=1`.

    A password in a `unix://` address is kept.
    """
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={number}"


def transport_options(visibility_timeout: int) -> dict[str, Any]:
    """The Redis transport: what a killed worker had taken is given out again after
    `visibility_timeout` seconds, looked for every 5 (stack.md section 2)."""
    return {
        "visibility_timeout": visibility_timeout,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_keepalive": True,
        "max_retries": 0,
        "queue_order_strategy": f"{__name__}:{UrgentFirst.__name__}",
    }
