"""A private PostgreSQL and Valkey for one run, before Django's settings are loaded.

Unlike the tests' servers these wait for the disk: PostgreSQL has its default
durability, and the folder is one that survives a restart, so no RAM disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hitl.local import defaults, keys, layout, postgres, process, valkey
from hitl.local.layout import Layout

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
# Whoever has set these means another installation.
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")


@contextmanager
def private() -> Iterator[Layout]:
    """Start both and name them in the environment; stop and remove them afterwards.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix="holdpoint-bench-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _environment(state)
        layout.make_run(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        password = keys.read(here.keys, "database_password")
        _keep(stack, here, postgres.start(here, password))
        _keep(stack, here, valkey.start(here))
        yield here


def _environment(state: Path) -> Layout:
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ |= {
        "STATE": str(state),
        "DEPLOYMENT": "local",
        "LOG_LEVEL": "WARNING",
        "HOLDPOINT_CALLABLES": "bench",
        "DJANGO_SETTINGS_MODULE": "hitl.settings",
    }
    here = defaults.fill(os.environ)
    (here.state / "static").mkdir()
    return here


def _keep(stack: ExitStack, here: Layout, child: process.Child) -> None:
    home = here.postgres_data.resolve().parent
    if child.name == "postgres" and home != here.state:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
    stack.callback(child.stop, within=5)
