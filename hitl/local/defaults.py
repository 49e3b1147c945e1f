"""Default environment variables of a private installation."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, MutableMapping
from urllib.parse import urlsplit

from hitl.environment import LOOPBACK, find_state_folder

from . import keys
from .layout import InstallationError, Layout, build_layout

# Each names an installation, or is a secret of one. Where one is set, DEPLOYMENT has
# been forgotten.
SETTINGS_OF_PRODUCTION = (
    "DATABASE_URL",
    "REDIS_URL",
    "BASE_URL",
    "ALLOWED_HOSTS",
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "DATA_KEY",
    "DATA_KEYS_RETIRED",
    "TAG_KEY",
    "GRANT_KEY",
    "GRANT_KEYS_NEXT",
    "GRANT_KEYS_RETIRED",
    "WEBHOOK_SECRET",
)

# The demo store listens ten ports above.
HIGHEST_PORT = 65526


def check_deployment(environ: Mapping[str, str]) -> None:
    """Raise InstallationError where DEPLOYMENT is not set and a variable shows that the
    installation is not this machine's own: another database or other keys would be
    taken for it."""
    named = [name for name in SETTINGS_OF_PRODUCTION if name in environ]
    if named and "DEPLOYMENT" not in environ:
        raise InstallationError(
            f"DEPLOYMENT: must be set where {named[0]} is: export"
            " DEPLOYMENT=production, or DEPLOYMENT=local for a gate of this machine"
            " alone"
        )


def fill_environment(
    environ: MutableMapping[str, str], *, writes_keys: bool = True
) -> Layout:
    """Add the missing variables for every process of this installation; variables that
    are set stay as they are. Creates the keys on first use, unless a command writes
    none: where there are no keys, there is no database either, and it gets passing
    ones.

    *Raises* InstallationError.
    """
    here = build_layout(find_state_folder(environ))
    port = _parse_port("PORT", environ.get("PORT") or _read_port(here) or "8000")
    _parse_port("STORE_PORT", environ.get("STORE_PORT") or str(port + 10))
    if writes_keys or here.keys.is_dir():
        keys.ensure_keys(here.keys)
        password = keys.read_key(here.keys, "database_password")
    else:
        passing = keys.make_passing_keys()
        password = passing.pop("database_password")
        for name, value in passing.items():
            environ.setdefault(name.upper(), value)
    environ["STATE"] = str(here.state)
    for name, value in {
        "DEPLOYMENT": "local",
        "PORT": str(port),
        "STORE_PORT": str(port + 10),  # a second installation needs only PORT
        "BASE_URL": f"http://{LOOPBACK}:{port}",
        "DATABASE_URL": here.database_url(password),
        "REDIS_URL": here.redis_url,
        "WEBHOOK_NETWORKS": f"{LOOPBACK}/32",
        "LOG_FORMAT": "console",
        "SOLO": "1" if here.solo_mark.exists() else "0",
    }.items():
        environ.setdefault(name, value)
    return here


def is_private(environ: Mapping[str, str]) -> bool:
    """Whether the database is the one that `counterseal up` runs for this STATE."""
    here = build_layout(find_state_folder(environ))
    configured = urlsplit(environ.get("DATABASE_URL", ""))
    return environ.get("DEPLOYMENT") == "local" and (
        configured.query == urlsplit(here.database_url("")).query
    )


def remember_run(here: Layout, port: str, *, solo: bool) -> None:
    """Keep the port and the mode of the running gate for the commands of another
    terminal."""
    here.port_file.write_text(f"{port}\n")
    if solo:
        here.solo_mark.touch()


def forget_run(here: Layout) -> None:
    """Forget the run that has ended."""
    here.port_file.unlink(missing_ok=True)
    here.solo_mark.unlink(missing_ok=True)


def _read_port(here: Layout) -> str:
    with contextlib.suppress(OSError):
        return here.port_file.read_text().strip()
    return ""


def _parse_port(name: str, text: str) -> int:
    highest = HIGHEST_PORT - 1 if name == "PORT" else 65535
    if not text.isdecimal() or not 0 < int(text) <= highest:
        raise InstallationError(f"{name}: {text!r} is not a number from 1 to {highest}")
    return int(text)
