"""`DATABASE_URL` as Django wants it."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict

# A lock waited for longer than this is a Conflict, not a queue.
LOCK_TIMEOUT_MS = 5000
CONNECT_TIMEOUT_S = 5
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


def config(url: str, *, application_name: str) -> dict[str, Any]:
    """One entry of DATABASES. Whatever else the address says (sslmode, ...) is passed
    on to the driver.

    Persistent connections: each of the web's few threads and each worker process
    keeps one, checked before it is used again.
    """
    options = conninfo_to_dict(url)
    named = {key: str(options.pop(part, "")) for part, key in PARTS.items()}
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_S)
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
