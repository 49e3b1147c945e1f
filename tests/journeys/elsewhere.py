"""A second installation for one test, with a PostgreSQL of its own that the test may
stop, copy and put back; this process's ORM talks to it meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from hitl.local import keys, layout, postgres, valkey
from hitl.local.layout import Layout
from hitl.local.process import Child
from tests import schema_template
from tests.stack import Stack, make

PARTS = {
    "NAME": "dbname",
    "USER": "user",
    "PASSWORD": "password",
    "HOST": "host",
    "PORT": "port",
}


@dataclass
class Elsewhere:
    """Its servers and its processes."""

    here: Layout
    password: str
    stack: Stack
    database: Child

    def stop_database(self) -> None:
        connection.close()
        assert self.database.stop(within=20)

    def start_database(self) -> None:
        self.database = postgres.start_server(self.here, self.password, fast=True)

    @property
    def data(self) -> Path:
        return self.here.postgres_data.resolve()

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            env=self.stack.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextlib.contextmanager
def installed(state: Path, *, migrated: bool = True) -> Iterator[Elsewhere]:
    """From nothing, with the keys of this run."""
    shutil.copytree(settings.COUNTERSEAL.state / "keys", state / "keys")
    (state / "static").mkdir()
    here = layout.build_layout(state)
    layout.create_run_folder(here.run)
    password = keys.read_key(here.keys, "database_password")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        database = postgres.start_server(here, password, fast=True)
        broker = valkey.start_server(here)
        stack.callback(broker.stop, within=5)
        found = Elsewhere(here, password, make(state), database)
        stack.callback(lambda: found.database.stop(within=20))
        stack.enter_context(_talking_to(found))
        stack.callback(found.stack.stop)
        if migrated:
            schema_template.load_schema(here.database_url(password), here)
        yield found


@contextlib.contextmanager
def _talking_to(other: Elsewhere) -> Iterator[None]:
    url = other.here.database_url(other.password)
    asked = conninfo_to_dict(url)
    places: dict[str, Any] = connection.settings_dict
    before = {name: places[name] for name in PARTS}, settings.COUNTERSEAL
    connection.close()
    places.update({name: asked.get(part, "") for name, part in PARTS.items()})
    urls = {"database_url": url, "redis_url": other.here.redis_url}
    other.stack.extra.update({name.upper(): text for name, text in urls.items()})
    known = {**urls, "state": other.here.state}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=known)
    try:
        yield
    finally:
        connection.close()
        places.update(before[0])
        settings.COUNTERSEAL = before[1]
