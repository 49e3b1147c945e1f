"""The checks that `counterseal doctor` and the health page share. Each yields what it
found, also where all is well, with a command that mends what is not. They write nothing
but a probe of the disk, which is the doctor's alone."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from desk.components import identity_provider
from journal import clock, heartbeats, known_keys, restore_epochs, sequencer
from journal.models import LogPosition
from policies import active, first_administrator, passkeys, step_up
from reviews import standstills
from reviews.effects.wording import format_names

from .. import base_url
from ..celery import SWEEPS
from ..checks import run_startup_checks
from ..command_line import describe_unusable_database
from ..disk import probe_state_folder
from ..doctor import OK, UNUSED, WARN, WRONG, Finding
from ..environment import find_state_folder
from . import probes

MAIL_TIMEOUT_S = 5.0
LEAST_FREE_MB, FEW_FREE_MB = 300, 2_000
MOST_SKEW_S = 2.0


def list_findings() -> Iterator[Finding]:
    """Every finding of the doctor, the settings' first."""
    yield from check_settings()
    yield from check_state()
    yield from check_free_space()
    yield from check_base_url()
    yield from check_broker()
    yield from check_mail()
    try:
        for check in DATABASE_CHECKS:
            yield from check()
    except DatabaseError as error:
        yield describe_lost_database(error)


def get_start_command() -> str:
    """The command that starts what does not run here."""
    if not settings.COUNTERSEAL.local:
        return "counterseal worker --beat"
    given = os.environ["STATE"]
    default = str(find_state_folder({**os.environ, "STATE": ""}).absolute())
    prefix = "" if given == default else f"STATE={shlex.quote(given)} "
    return f"{prefix}counterseal up"


def check_settings() -> Iterator[Finding]:
    """What the start-up checks say of the settings."""
    counterseal = settings.COUNTERSEAL
    try:
        messages = run_startup_checks()
    except ImproperlyConfigured as error:
        for line in str(error).splitlines():
            yield Finding("Settings", WRONG, line, "counterseal check")
        return
    for message in messages:
        yield Finding("Settings", WARN, str(message.msg), "counterseal check --deploy")
    if not messages:
        text = f"valid, {counterseal.deployment}, {counterseal.base_url}"
        yield Finding("Settings", OK, text)


def check_base_url() -> Iterator[Finding]:
    """Whether BASE_URL leads here, asked through the proxy."""
    if settings.COUNTERSEAL.local:
        return  # its web processes are on this machine, with no proxy before them
    address = settings.COUNTERSEAL.base_url
    repair = f"curl -sSi {shlex.quote(address + base_url.PROBE_PATH)}"
    try:
        fault = base_url.probe()
    except OSError as error:
        text = f"BASE_URL: {address} does not answer ({error})"
        yield Finding("Proxy", WRONG, text, repair)
        return
    if fault:
        yield Finding("Proxy", WRONG, f"BASE_URL: {fault}", repair)
    else:
        yield Finding("Proxy", OK, f"{address} answers")


def check_state() -> Iterator[Finding]:
    """Whether this host can write to STATE. It writes there."""
    state = settings.COUNTERSEAL.state
    quoted = shlex.quote(str(state))
    if fault := probe_state_folder():
        repair = f'sudo install -d -o "$(id -un)" {quoted}'
        yield Finding("STATE", WRONG, f"{fault} ({state})", repair)
        return
    yield Finding("STATE", OK, f"{state} can be written")


def check_free_space() -> Iterator[Finding]:
    """How much room this host's disk of STATE has."""
    state = settings.COUNTERSEAL.state
    quoted = shlex.quote(str(state))
    try:
        free = shutil.disk_usage(state).free // 1_000_000
    except OSError:  # the check of STATE says so
        return
    level = WRONG if free < LEAST_FREE_MB else WARN if free < FEW_FREE_MB else OK
    repair = "" if level == OK else f"du -xh --max-depth=2 {quoted} | sort -h | tail"
    yield Finding("Disk", level, f"{free:,} MB are free for STATE", repair)


def check_broker() -> Iterator[Finding]:
    """Whether the broker answers now."""
    if probes.probe_broker() == probes.OK:
        yield Finding("Broker", OK, "answers")
        return
    local = settings.COUNTERSEAL.local
    repair = get_start_command() if local else 'redis-cli -u "$REDIS_URL" ping'
    yield Finding("Broker", WRONG, "REDIS_URL: the broker does not answer", repair)


def check_mail() -> Iterator[Finding]:
    """Whether the mail server accepts a connection."""
    counterseal = settings.COUNTERSEAL
    if not counterseal.mail_url:
        where = f"no MAIL_URL: mails are files in {settings.EMAIL_FILE_PATH}"
        repair = "export MAIL_URL=smtp+tls://USER:PASSWORD@mail.example.com:587"
        level = OK if counterseal.local else WARN
        yield Finding("Mail", level, where, "" if counterseal.local else repair)
        return
    host, port = settings.EMAIL_HOST, settings.EMAIL_PORT
    try:
        socket.create_connection((host, port), MAIL_TIMEOUT_S).close()
    except OSError as error:
        text = f"MAIL_URL: {host}:{port} does not answer ({error})"
        yield Finding("Mail", WRONG, text, f"nc -vz {host} {port}")
    else:
        yield Finding("Mail", OK, f"{host}:{port} answers")


def check_sign_in() -> Iterator[Finding]:
    """How people sign in, and whether the identity provider, if any, answers."""
    given, subject = settings.COUNTERSEAL, "Single sign-on"
    offered = ["a password"]
    if step_up.is_provider_offered():
        offered.insert(0, f"“Sign in with {given.oidc_label}”")
        address = f"{given.oidc_issuer.rstrip('/')}/.well-known/openid-configuration"
        if fault := identity_provider.probe():
            text = f"{given.oidc_label}: {given.oidc_issuer} {fault}"
            yield Finding(subject, WRONG, text, f"curl -sSi {shlex.quote(address)}")
        else:
            text = f"{given.oidc_label}: {given.oidc_issuer} answers"
            yield Finding(subject, OK, text)
    else:
        text = "not set up: no identity provider signs people in (OIDC_ISSUER)"
        yield Finding(subject, UNUSED, text)
    if passkeys.is_offered():
        offered.append("a passkey")
    yield Finding("Sign-in page", OK, f"offers {format_names(offered, most=3)}")


def describe_lost_database(error: DatabaseError) -> Finding:
    """What is known of a database that did not answer."""
    try:
        text = describe_unusable_database(error)
    except DatabaseError:  # one that nobody knows what to do about
        text = f"DATABASE_URL: {str(error).strip().partition(chr(10))[0]}"
    repair = (
        get_start_command() if settings.COUNTERSEAL.local else "counterseal migrate"
    )
    if "counterseal migrate" not in text and not settings.COUNTERSEAL.local:
        repair = 'psql "$DATABASE_URL" -c "SELECT 1"'
    return Finding("Database", WRONG, text, repair)


def check_database() -> Iterator[Finding]:
    """Whether the database is of this release, and takes changes."""
    if missing := probes.count_missing_migrations():
        text = f"answers, but {missing} migrations of this release are missing"
        yield Finding("Database", WRONG, text, "counterseal migrate")
    elif probes.is_standby():
        text = "is a standby, which takes no changes: DATABASE_URL must name the other"
        repair = 'psql "$DATABASE_URL" -c "SELECT pg_is_in_recovery()"'
        yield Finding("Database", WRONG, text, repair)
    else:
        yield Finding("Database", OK, "answers, and is of this release")


def check_clock() -> Iterator[Finding]:
    """Whether the clock of this process is the database's."""
    skew = abs(clock.now().timestamp() - time.time())
    text = f"this machine and the database differ by {skew:.2f} s"
    if skew > MOST_SKEW_S:
        yield Finding("Clock", WARN, text, "sudo timedatectl set-ntp true")
    else:
        yield Finding("Clock", OK, text)


def check_policy() -> Iterator[Finding]:
    """Whether a policy is in force."""
    policy = active.find_active_policy()
    if policy is not None:
        tools = len(active.load_tools(policy))
        text = f"version {policy.number} is in force, with {tools} tools"
        yield Finding("Policy", OK, text)
        return
    repair = "counterseal setup-link"
    if first_administrator.has_administrator():
        repair = "counterseal policy list"
    yield Finding("Policy", WRONG, "none is in force: every call is refused", repair)


def check_workers() -> Iterator[Finding]:
    """Whether sweeps are sent and run, and effects are taken up."""
    ages = heartbeats.compute_ages()
    limit = float(settings.COUNTERSEAL.standstill_seconds)
    # A sweep of minutes or hours may not have been due since the last start.
    often = {name: period for name, period in SWEEPS.items() if 3 * period <= limit}
    late = standstills.list_late_sweeps(ages, often, limit)
    if len(late) == len(often):
        yield Finding("Worker, beat", WRONG, "none runs", get_start_command())
    elif late:
        text = f"late: {', '.join(late)}"
        yield Finding("Worker, beat", WRONG, text, get_start_command())
    elif seconds := standstills.compute_effects_delay(ages, limit):
        text = f"nothing takes up effects since {seconds:.0f} s"
        yield Finding("Worker, beat", WRONG, text, get_start_command())
    else:
        last = min(ages[name] for name in often)
        text = f"sweeps and effects run, the last sweep {last:.0f} s ago"
        yield Finding("Worker, beat", OK, text)


def check_log() -> Iterator[Finding]:
    """Up to where the log is in order, and what holds it back."""
    if reason := restore_epochs.find_halt_reason():
        repair = 'counterseal restored --by NAME --reason "what was restored, and why"'
        yield Finding("Log", WRONG, restore_epochs.HALT_WORDS[reason], repair)
        return
    delay = sequencer.find_delay(float(settings.COUNTERSEAL.standstill_seconds))
    ordered = LogPosition.objects.order_by("-record").values_list("seq", flat=True)
    newest = ordered.first()
    order = "" if newest is None else f" up to record {newest}"
    if delay is None:
        yield Finding("Log", OK, f"in order{order}")
        return
    text = (
        f"in order{order}; {delay.waiting} records wait for their place since"
        f" {delay.seconds:.0f} s"
    )
    if delay.pid is None:
        yield Finding("Log", WARN, text, get_start_command())
    else:
        text = f"{text}: the transaction of process {delay.pid} holds them back"
        end = f'psql "$DATABASE_URL" -c "SELECT pg_terminate_backend({delay.pid})"'
        yield Finding("Log", WARN, text, end)


def check_keys() -> Iterator[Finding]:
    """Whether the keys are this database's. It notes the keys that are new."""
    try:
        warnings = known_keys.check_keys()
    except ImproperlyConfigured as error:
        for line in str(error).splitlines():
            yield Finding("Keys", WRONG, line, "counterseal check")
        return
    for text in warnings:
        yield Finding("Keys", WARN, text, "counterseal keys rotate")
    if not warnings:
        yield Finding("Keys", OK, "those of this database")


DATABASE_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_database,
    check_keys,
    check_clock,
    check_policy,
    check_workers,
    check_log,
)
