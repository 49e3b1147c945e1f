"""`REDIS_URL` as Celery wants it, and the settings that make Celery a mere nudge.

`DATABASE_URL` as Django wants it.

`MAIL_URL` as Django wants it; without one, mail is written to files in `STATE`.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from kombu.entity import Queue
from kombu.utils.scheduling import round_robin_cycle
from psycopg.conninfo import conninfo_to_dict

# A dead broker costs a web request this much at most; the sweep finds the row anyway.
BROKER_CONNECT_TIMEOUT_S = 1
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
        "socket_connect_timeout": BROKER_CONNECT_TIMEOUT_S,
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_keepalive": True,
        "max_retries": 0,
        "queue_order_strategy": f"{__name__}:{UrgentFirst.__name__}",
    }


# A lock waited for longer than this is a Conflict, not a queue.
LOCK_TIMEOUT_MS = 5000
DATABASE_CONNECT_TIMEOUT_S = 5
# A peer that says nothing for so long is gone, whichever side we are: a host that lost
# its power never closes a connection, and the row locks of its transaction would stand
# until the kernel's own two hours are over.
SILENT_S, PROBE_S, PROBES = 10, 5, 3
UNACKNOWLEDGED_MS = 25_000
# Longer than any operation: who holds a transaction open without a word is stuck.
IDLE_IN_TRANSACTION_MS = 60_000
PARTS = {
    "dbname": "NAME",
    "user": "USER",
    "password": "PASSWORD",
    "host": "HOST",
    "port": "PORT",
}

# What we ask of our end of the connection, and of the server's.
OURS = {
    "keepalives_idle": SILENT_S,
    "keepalives_interval": PROBE_S,
    "keepalives_count": PROBES,
    "tcp_user_timeout": UNACKNOWLEDGED_MS,
}
THEIRS = {
    "lock_timeout": LOCK_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
    "tcp_keepalives_idle": SILENT_S,
    "tcp_keepalives_interval": PROBE_S,
    "tcp_keepalives_count": PROBES,
    "tcp_user_timeout": UNACKNOWLEDGED_MS,
}


def database_config(url: str, *, application_name: str) -> dict[str, Any]:
    """One entry of DATABASES. Whatever else the address says (sslmode, ...) is passed
    on to the driver.

    Persistent connections: each of the web's few threads and each worker process
    keeps one, checked before it is used again.
    """
    options = conninfo_to_dict(url)
    named = {key: str(options.pop(part, "")) for part, key in PARTS.items()}
    options.setdefault("connect_timeout", DATABASE_CONNECT_TIMEOUT_S)
    options.setdefault("application_name", application_name)
    for name, value in OURS.items():
        options.setdefault(name, value)
    extra = options.pop("options", "")
    options["options"] = f"{' '.join(_switches())} {extra}".strip()
    return {
        "ENGINE": "django.db.backends.postgresql",
        **named,
        "OPTIONS": options,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def _switches() -> list[str]:
    return [f"-c {name}={value}" for name, value in THEIRS.items()]


BACKENDS = "django.core.mail.backends"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


class Mail(NamedTuple):
    """Where mail goes."""

    backend: str
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def mail_config(url: str) -> Mail:
    """`smtp://`, `smtp+tls://` (STARTTLS) or `smtps://`, checked by the environment."""
    if not url:
        return Mail(f"{BACKENDS}.filebased.EmailBackend")
    parts = urlsplit(url)
    return Mail(
        f"{BACKENDS}.smtp.EmailBackend",
        host=parts.hostname or "",
        port=parts.port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+tls",
        tls=parts.scheme == "smtps",
    )
