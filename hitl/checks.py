"""What must hold before anything runs. `manage.py` checks it by itself; the web and
the worker ask `refuse_unsafe` as they start."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured

TAG = "holdpoint"


def rungs() -> list[tuple[str, int]]:
    """The time-outs that are really in force, shortest first, in seconds.

    An outgoing call must end before the task is told to stop, the task before it is
    killed, and it must be dead before its lease lapses and before the broker gives
    its message to somebody else (proof.md 2.2).
    """
    transport = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    return [
        ("HTTP_TIMEOUT", settings.HOLDPOINT.http_timeout),
        ("SOFT_TIME_LIMIT", settings.CELERY_TASK_SOFT_TIME_LIMIT),
        ("TIME_LIMIT", settings.CELERY_TASK_TIME_LIMIT),
        ("LEASE_SECONDS", settings.HOLDPOINT.lease_seconds),
        ("VISIBILITY_TIMEOUT", transport["visibility_timeout"]),
    ]


@register(TAG)
def ladder(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Each rung must be longer than the one before it."""
    return [
        Error(
            f"{name} ({value} s) must be less than {upper} ({limit} s).", id="hitl.E1"
        )
        for (name, value), (upper, limit) in pairwise(rungs())
        if value >= limit
    ]


@register(TAG)
def cookies(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Without https, anyone on the way can take a session over."""
    if settings.HOLDPOINT.secure_cookies:
        return []
    return [
        Warning(
            f"BASE_URL {settings.HOLDPOINT.base_url} is plain http and not loopback: "
            "cookies have plain names and can be read on the way.",
            hint="Put TLS in front and set BASE_URL to the https address.",
            id="hitl.W1",
        )
    ]


@register(TAG)
def callbacks(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Letters to agents once went wherever tools' services are; they no longer do."""
    holdpoint = settings.HOLDPOINT
    said = "callback_networks" in holdpoint.model_fields_set
    if holdpoint.local or said or not holdpoint.webhook_networks:
        return []
    return [
        Warning(
            "CALLBACK_NETWORKS is not set: letters to agents go to public addresses "
            "only, and not to WEBHOOK_NETWORKS.",
            hint="Name the private networks in which agents listen, or set it empty.",
            id="hitl.W2",
        )
    ]


def refuse_unsafe() -> list[CheckMessage]:
    """Run our own checks: the warnings, for the caller to say aloud.

    *Raises* ImproperlyConfigured with one line for each error.
    """
    found = run_checks(tags=[TAG])
    errors = [str(message.msg) for message in found if message.is_serious()]
    if errors:
        raise ImproperlyConfigured("\n".join(errors))
    return found
