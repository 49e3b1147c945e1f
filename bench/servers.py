"""A private PostgreSQL and Valkey for one run, before Django's settings are loaded.

Unlike the tests' servers these wait for the disk: PostgreSQL has its default
durability, and the folder is one that survives a restart, so no RAM disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hitl.local import defaults, keys, layout, postgres, valkey
from hitl.local.layout import Layout

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
# Whoever has set these means another installation.
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")


@contextmanager
def start_private_servers() -> Iterator[Layout]:
    """Start both and name them in the environment; stop and remove them afterwards.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        here = stack.enter_context(
            create_installation("bench", HOLDPOINT_CALLABLES="bench")
        )
        (here.state / "static").mkdir()
        password = keys.read_key(here.keys, "database_password")
        stack.callback(postgres.start_server(here, password).stop, within=5)
        stack.callback(valkey.start_server(here).stop, within=5)
        yield here


@contextmanager
def create_installation(name: str, **more: str) -> Iterator[Layout]:
    """The folders of one installation, named in the environment with `more`; removed
    afterwards, when its servers must have been stopped. *Raises* Fault."""
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix=f"holdpoint-{name}-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _fill_environment(state, more)
        layout.create_run_folder(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        stack.callback(_remove_data, here)
        yield here


def _fill_environment(state: Path, more: Mapping[str, str]) -> Layout:
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ |= {
        "STATE": str(state),
        "DEPLOYMENT": "local",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "hitl.settings",
        **more,
    }
    return defaults.fill_environment(os.environ)


def _remove_data(here: Layout) -> None:
    """PostgreSQL has a home of its own where it runs as somebody else."""
    home = here.postgres_data.resolve().parent
    if home != here.state:
        shutil.rmtree(home, ignore_errors=True)
