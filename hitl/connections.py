"""Converts `DATABASE_URL`, `REDIS_URL` and `MAIL_URL` to settings of Django and Celery,
and defines the queues.

Celery only carries nudges, so its time-outs are short. Without `MAIL_URL`, mail is
written to files in `STATE`.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from kombu.entity import Queue
from kombu.utils.scheduling import round_robin_cycle
from psycopg.conninfo import conninfo_to_dict

# The most a dead broker delays a web request; the sweep finds the row anyway.
BROKER_CONNECT_TIMEOUT_S = 1
SOCKET_TIMEOUT_S = 2

# Six queues, so that slow work delays nothing more urgent: effects and sweeps do not
# wait for mail or look-ups, mail does not wait for agents' servers, agents' outcomes do
# not wait for mail, and writing webhook deliveries does not wait for sending them. A
# worker serves all queues unless `-Q` selects some.
EFFECTS, SWEEPS = "effects", "celery"
INQUIRIES, NOTIFICATIONS = "inquiries", "notifications"
OUTCOMES, HOOKS = "outcomes", "hooks"
QUEUES = tuple(map(Queue, (EFFECTS, SWEEPS, INQUIRIES, NOTIFICATIONS, OUTCOMES, HOOKS)))
LOW_PRIORITY = frozenset({INQUIRIES, NOTIFICATIONS, OUTCOMES, HOOKS})
ROUTES = {
    "hitl.tasks.execute": {"queue": EFFECTS},
    "hitl.tasks.run_execution": {"queue": EFFECTS},
    "hitl.tasks.pulse_effects": {"queue": EFFECTS},
    "hitl.tasks.audit_one": {"queue": INQUIRIES},
    "hitl.tasks.look_up_one": {"queue": INQUIRIES},
    "hitl.tasks.notify_people": {"queue": NOTIFICATIONS},
    "hitl.tasks.send_*": {"queue": NOTIFICATIONS},
    "hitl.tasks.write_export": {"queue": NOTIFICATIONS},
    "hitl.tasks.write_dataset": {"queue": NOTIFICATIONS},
    "agents.tasks.tell": {"queue": OUTCOMES},
    "agents.tasks.post": {"queue": HOOKS},
}


class UrgentFirstCycle(round_robin_cycle):
    """kombu queue order: the urgent queues in turn, then the others in turn.

    A worker serves effects and sweeps first. It takes from the other queues only when
    both are empty, so an overloaded worker recovers before it sends notifications.
    """

    def consume(self, n: int) -> list[str]:
        return sorted(self.items[:n], key=LOW_PRIORITY.__contains__)


def build_broker_url(redis_url: str) -> str:
    """Convert `unix:///path?db=1` to kombu's form,
    `redis+socket:///path?virtual_host=1`.

    A password in a `unix://` address is kept. Other addresses stay as they are.
    """
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={number}"


def build_transport_options(visibility_timeout: int) -> dict[str, Any]:
    """Options of the Redis transport.

    The broker redelivers what a killed worker had taken after `visibility_timeout`
    seconds; it looks for such messages every 5 seconds.
    """
    return {
        "visibility_timeout": visibility_timeout,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": BROKER_CONNECT_TIMEOUT_S,
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_keepalive": True,
        "max_retries": 0,
        "queue_order_strategy": f"{__name__}:{UrgentFirstCycle.__name__}",
    }


# Waiting longer than this for a lock raises Conflict.
LOCK_TIMEOUT_MS = 5000
DATABASE_CONNECT_TIMEOUT_S = 5
# Keepalive, on both ends of a connection. A host that loses power never closes its
# connection, and the row locks of its transaction would be held until the kernel's
# default of two hours ends.
SILENT_S, PROBE_S, PROBES = 10, 5, 3
UNACKNOWLEDGED_MS = 25_000
# Longer than any operation pauses: a client idle in a transaction this long is stuck.
IDLE_IN_TRANSACTION_MS = 60_000
DATABASE_KEYS = {
    "dbname": "NAME",
    "user": "USER",
    "password": "PASSWORD",
    "host": "HOST",
    "port": "PORT",
}

# Options of our end of the connection (libpq) and of the server's end. The latter are
# set once the connection is made: a pooler refuses them in the request for one.
CLIENT_OPTIONS = {
    "keepalives_idle": SILENT_S,
    "keepalives_interval": PROBE_S,
    "keepalives_count": PROBES,
    "tcp_user_timeout": UNACKNOWLEDGED_MS,
}
SERVER_OPTIONS = {
    "lock_timeout": LOCK_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
    "tcp_keepalives_idle": SILENT_S,
    "tcp_keepalives_interval": PROBE_S,
    "tcp_keepalives_count": PROBES,
    "tcp_user_timeout": UNACKNOWLEDGED_MS,
}

# Only prepared statements reuse plans. Their texts contain the constants that partial
# indexes need (journal/statements.py).
PLAN_OPTIONS = {"plan_cache_mode": "force_generic_plan"}


def build_database_config(url: str, *, application_name: str) -> dict[str, Any]:
    """One entry of DATABASES. Other parameters in the address (sslmode, ...) are passed
    on to the driver.

    Connections are persistent: each web thread and each worker process keeps one, and
    Django checks it before it is used again.
    """
    options: dict[str, Any] = conninfo_to_dict(url)
    named = {key: str(options.pop(part, "")) for part, key in DATABASE_KEYS.items()}
    options.setdefault("connect_timeout", DATABASE_CONNECT_TIMEOUT_S)
    options.setdefault("application_name", application_name)
    for name, value in CLIENT_OPTIONS.items():
        options.setdefault(name, value)
    given = options.get("options", "")
    options["session_settings"] = {
        name: str(value)
        for name, value in {**SERVER_OPTIONS, **PLAN_OPTIONS}.items()
        if f"{name}=" not in given.replace(" ", "")
    }
    return {
        "ENGINE": "hitl.postgresql",
        **named,
        "OPTIONS": options,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


MAIL_BACKENDS = "django.core.mail.backends"
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


class MailConfig(NamedTuple):
    """The mail backend and its server."""

    backend: str
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def build_mail_config(url: str) -> MailConfig:
    """Parse `smtp://`, `smtp+tls://` (STARTTLS) or `smtps://`, which the environment
    has checked. An empty address selects files in `STATE`."""
    if not url:
        return MailConfig(f"{MAIL_BACKENDS}.filebased.EmailBackend")
    parts = urlsplit(url)
    return MailConfig(
        f"{MAIL_BACKENDS}.smtp.EmailBackend",
        host=parts.hostname or "",
        port=parts.port or MAIL_PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+tls",
        tls=parts.scheme == "smtps",
    )
