"""Default environment variables of a private installation."""

from __future__ import annotations

import contextlib
from collections.abc import MutableMapping

from hitl.environment import LOOPBACK, find_state_folder

from . import keys
from .layout import InstallationError, Layout, build_layout

# The demo store listens ten ports above.
HIGHEST_PORT = 65526


def fill_environment(environ: MutableMapping[str, str]) -> Layout:
    """Add the missing variables for every process of this installation; variables that
    are set stay as they are. Creates the keys on first use.

    *Raises* InstallationError.
    """
    here = build_layout(find_state_folder(environ))
    keys.ensure_keys(here.keys)
    password = keys.read_key(here.keys, "database_password")
    port = _parse_port(environ.get("PORT") or _read_port(here) or "8000")
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
    }.items():
        environ.setdefault(name, value)
    return here


def remember_port(here: Layout, port: str) -> None:
    """Keep the port of the running gate for the commands of another terminal."""
    here.port_file.write_text(f"{port}\n")


def _read_port(here: Layout) -> str:
    with contextlib.suppress(OSError):
        return here.port_file.read_text().strip()
    return ""


def _parse_port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < HIGHEST_PORT:
        raise InstallationError(
            f"PORT: {text!r} is not a number from 1 to {HIGHEST_PORT - 1}"
        )
    return int(text)
