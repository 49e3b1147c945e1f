"""The server's part of `counterseal doctor`: what is right and wrong with the gate that
this machine runs. It creates no key."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import django
from django.core.exceptions import ImproperlyConfigured

from .command_line import prepare_environment
from .environment import find_state_folder
from .garbage_collection import suspend_collection
from .local.layout import InstallationError, build_layout

OK, WARN, WRONG = "ok", "warn", "wrong"
UNUSED = "unused"  # not set up, and nothing needs it


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what it is about, its level, what holds, and a command that mends it.
    Where none does, `advice` is what a person does; the doctor finds nothing such."""

    subject: str
    level: str
    text: str
    repair: str = ""
    advice: str = ""


def diagnose() -> list[dict[str, str]]:
    """Every finding about this machine's gate; none where the machine has none."""
    if not _has_gate():
        return []
    names = ("subject", "level", "text", "repair")
    return [{n: getattr(finding, n) for n in names} for finding in _list_findings()]


def _has_gate() -> bool:
    named = {"DATABASE_URL", "REDIS_URL", "BASE_URL", "DEPLOYMENT"} & set(os.environ)
    return bool(named) or _has_keys()


def _has_keys() -> bool:
    return build_layout(find_state_folder(os.environ)).keys.is_dir()


def _list_findings() -> Iterator[Finding]:
    if os.environ.get("DEPLOYMENT") == "local" and not _has_keys():
        # Anything more would make the keys of a private gate.
        yield Finding("Settings", WRONG, "no gate ran here yet", "counterseal up")
        return
    try:
        prepare_environment()
        with suspend_collection():
            django.setup()
    except (ImproperlyConfigured, InstallationError) as error:
        for line in str(error).splitlines():
            yield Finding("Settings", WRONG, line, "counterseal check")
        return
    # Models can be imported only now.
    checks = importlib.import_module(f"{__package__}.health.checks")
    yield from checks.list_findings()
