"""System checks on the deployment's settings.

`manage.py` runs them by itself; the web process and workers call `run_startup_checks`
when they start.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured

TAG = "counterseal"


def list_timeouts() -> list[tuple[str, int]]:
    """The effective time-outs as (name, seconds), in the order they must increase.

    An outgoing call must end before the task is told to stop, the task must stop before
    it is killed, and it must be dead before its lease lapses and before the broker
    gives its message to another worker.
    """
    transport = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    return [
        ("HTTP_TIMEOUT", settings.COUNTERSEAL.http_timeout),
        ("SOFT_TIME_LIMIT", settings.CELERY_TASK_SOFT_TIME_LIMIT),
        ("TIME_LIMIT", settings.CELERY_TASK_TIME_LIMIT),
        ("LEASE_SECONDS", settings.COUNTERSEAL.lease_seconds),
        ("VISIBILITY_TIMEOUT", transport["visibility_timeout"]),
    ]


@register(TAG)
def check_timeout_order(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Report each time-out that is not shorter than the next one."""
    return [
        Error(
            f"{name} ({value} s) must be less than {upper} ({limit} s).", id="hitl.E1"
        )
        for (name, value), (upper, limit) in pairwise(list_timeouts())
        if value >= limit
    ]


@register(TAG)
def check_secure_cookies(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Warn when cookies are sent over plain http, where sessions can be stolen."""
    if settings.COUNTERSEAL.secure_cookies:
        return []
    return [
        Warning(
            f"BASE_URL {settings.COUNTERSEAL.base_url} is plain http and not loopback: "
            "cookies have plain names and can be read in transit.",
            hint="Put TLS in front and set BASE_URL to the https address.",
            id="hitl.W1",
        )
    ]


@register(TAG)
def check_callback_networks(
    app_configs: Any = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn when agents may listen in a private network that is no longer allowed.

    Webhooks to agents once used WEBHOOK_NETWORKS, the networks of tools' services; they
    now use CALLBACK_NETWORKS alone.
    """
    counterseal = settings.COUNTERSEAL
    configured = "callback_networks" in counterseal.model_fields_set
    if counterseal.local or configured or not counterseal.webhook_networks:
        return []
    return [
        Warning(
            "CALLBACK_NETWORKS is not set: webhook deliveries to agents go to public "
            "addresses only, and not to WEBHOOK_NETWORKS.",
            hint="Set it to the private networks that agents listen in, or to nothing.",
            id="hitl.W2",
        )
    ]


def run_startup_checks() -> list[CheckMessage]:
    """Run our own checks and return the warnings, for the caller to log.

    *Raises* ImproperlyConfigured with one line for each error.
    """
    messages = run_checks(tags=[TAG])
    errors = [str(message.msg) for message in messages if message.is_serious()]
    if errors:
        raise ImproperlyConfigured("\n".join(errors))
    return messages
