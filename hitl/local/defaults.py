"""What the environment says of a private installation when nobody says otherwise."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from hitl.environment import LOOPBACK, ROOT

from . import keys
from .layout import Fault, Layout, layout

# The store takes the port ten above.
HIGHEST_PORT = 65526


def fill(environ: MutableMapping[str, str]) -> Layout:
    """Complete the environment for every process of this installation; what is set
    stays as it is. Makes the keys on first use.

    *Raises* Fault.
    """
    here = layout(Path(environ.get("STATE") or ROOT / "var"))
    keys.ensure(here.keys)
    password = keys.read(here.keys, "database_password")
    port = _port(environ.get("PORT") or "8000")
    environ["STATE"] = str(here.state)
    for name, value in {
        "DEPLOYMENT": "local",
        "PORT": str(port),
        "STORE_PORT": str(port + 10),  # two installations need only two PORTs
        "BASE_URL": f"http://{LOOPBACK}:{port}",
        "DATABASE_URL": here.database_url(password),
        "REDIS_URL": here.redis_url,
        "WEBHOOK_NETWORKS": f"{LOOPBACK}/32",
        "LOG_FORMAT": "console",
    }.items():
        environ.setdefault(name, value)
    return here


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < HIGHEST_PORT:
        raise Fault(f"PORT: {text!r} is not a number from 1 to {HIGHEST_PORT - 1}")
    return int(text)
