"""The migrated schema as a template of the test database, so that the migrations run
once and not in every process that runs tests. `migrate` still runs on the copy, and
finds nothing to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from hitl.environment import ROOT
from hitl.local import postgres
from hitl.local.layout import Layout
from tests.build_cache import build_once

NAME = "counterseal_migrated"
SCRATCH = "counterseal_scratch"
SOURCES = (
    "*/migrations/*.py",
    "*/models.py",
    "*/models/*.py",
    "*/choices.py",
    "journal/*.py",
    "hitl/postgresql/*.py",
    "hitl/management/commands/migrate.py",
    "requirements.lock",
)
RESTORE = ("--quiet", "--no-psqlrc", "--single-transaction", "-vON_ERROR_STOP=1")


def create_template(database_url: str, layout: Layout) -> None:
    """Create the database `NAME`, with every migration applied, on the private server
    of `layout`, which `database_url` leads to."""
    host = postgres.detect_host(layout)
    url = _create_database(host, database_url, NAME)
    load_schema(url, layout)


def load_schema(database_url: str, layout: Layout) -> None:
    """Make an empty database of the private server of `layout` a migrated one."""
    host = postgres.detect_host(layout)
    schema = build_once("schema", SOURCES, partial(_dump_schema, host, database_url))
    _run(host.argv("psql", *RESTORE, f"--dbname={database_url}", f"--file={schema}"))


def _dump_schema(host: postgres.PostgresHost, database_url: str, file: Path) -> None:
    url = _create_database(host, database_url, SCRATCH)
    environ = {**os.environ, "DATABASE_URL": url}
    _run([sys.executable, "manage.py", "migrate", "--verbosity=0"], environ)
    _run(host.argv("pg_dump", f"--dbname={url}", f"--file={file}"))


def _create_database(host: postgres.PostgresHost, database_url: str, name: str) -> str:
    """The URL of the new database."""
    _run(host.argv("createdb", f"--maintenance-db={database_url}", name))
    return urlsplit(database_url)._replace(path=f"/{name}").geturl()


def _run(argv: list[str], environ: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        argv, env=environ, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv} failed: {done.stderr}")
