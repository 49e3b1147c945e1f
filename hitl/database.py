"""`DATABASE_URL` as Django wants it."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict

# A lock waited for longer than this is a Conflict, not a queue.
LOCK_TIMEOUT_MS = 5000
CONNECT_TIMEOUT_S = 5
PARTS = {
    "dbname": "NAME",
    "user": "USER",
    "password": "PASSWORD",
    "host": "HOST",
    "port": "PORT",
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
    extra = options.pop("options", "")
    options["options"] = f"-c lock_timeout={LOCK_TIMEOUT_MS} {extra}".strip()
    return {
        "ENGINE": "django.db.backends.postgresql",
        **named,
        "OPTIONS": options,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
