"""System checks on the deployment's settings.

`manage.py` runs them by itself; the web process and workers call `run_startup_checks`
and `check_known_keys` when they start.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import pairwise
from typing import Any

import psycopg
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, OperationalError, connection
from django.db.backends.signals import connection_created
from django.utils.module_loading import import_string
from structlog.stdlib import get_logger

from . import base_url
from .connections import DATABASE_CONNECT_TIMEOUT_S
from .postgresql import pooling

TAG = "counterseal"
log = get_logger(__name__)


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


@register(TAG, deploy=True)
def check_base_url(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Ask BASE_URL for the sign-in page, through the proxy. Nothing is said where
    nobody answers: the web processes may not have been started yet."""
    try:
        fault = base_url.probe()
    except OSError:
        return []
    return [Error(f"BASE_URL: {fault}", id="hitl.E2")] if fault else []


def _has_transaction_pooling() -> bool:
    try:
        return pooling.changes_sessions(
            settings.COUNTERSEAL.database_url, DATABASE_CONNECT_TIMEOUT_S
        )
    except psycopg.Error:  # /readyz reports it
        return False


def check_known_keys(*, serving: bool = False) -> list[str]:
    """Compare this process's keys with those that the database knows, and return the
    warnings. While the database does not answer, or is not of this release, nothing is
    compared; this process and its children then compare before they use their first
    connection, and a process that is `serving` ends when a key is wrong.

    *Raises* ImproperlyConfigured with one line for each wrong key.
    """
    try:
        return _compare_keys()
    except DatabaseError:
        late = _LateComparison(os.getpid() if serving else None)
        connection_created.connect(late.compare, weak=False)
        return []
    finally:
        if not connection.in_atomic_block:  # the caller may be a thread of its own
            connection.close()


def _compare_keys() -> list[str]:
    # Celery imports this module before the models are there.
    warnings: list[str] = import_string("journal.known_keys.check_keys")()
    return warnings


class WrongKeys(OperationalError):
    """A key of this process is another one than the database's. The process ends, and
    until then the database counts as away."""


class _LateComparison:
    """Compares the keys on each new connection, before anything else, until the
    database has answered."""

    def __init__(self, serving_pid: int | None) -> None:
        self.serving_pid = serving_pid
        self.done, self.lock = False, threading.RLock()

    def compare(self, connection: Any, **kwargs: Any) -> None:
        """*Raises* WrongKeys in a process that serves, otherwise
        ImproperlyConfigured."""
        with self.lock:  # another thread waits for the answer, too
            # guard: late-keys
            if not self.done:
                self._compare(connection)

    def _compare(self, connection: Any) -> None:
        try:
            warnings = _compare_keys()
        except DatabaseError:
            connection.close_at = time.monotonic()  # and compare on the next one
            return
        except ImproperlyConfigured as error:
            connection.close()
            if self.serving_pid is None:
                raise
            for line in str(error).splitlines():
                log.critical(line)
            os.kill(self.serving_pid, signal.SIGTERM)
            raise WrongKeys(str(error)) from error
        self.done = True
        for text in warnings:
            log.warning(text)


def run_startup_checks() -> list[CheckMessage]:
    """Run our own checks and return the warnings, for the caller to log. In production
    one of them asks the database, if it answers.

    *Raises* ImproperlyConfigured with one line for each error.
    """
    messages = run_checks(tags=[TAG])
    errors = [str(message.msg) for message in messages if message.is_serious()]
    if not settings.COUNTERSEAL.local and _has_transaction_pooling():
        errors.append(pooling.REPAIR)
    if errors:
        raise ImproperlyConfigured("\n".join(errors))
    return messages
