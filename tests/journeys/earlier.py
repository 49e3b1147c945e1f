"""The release before this one, from the project's history: its code, its schema and its
processes, beside those of today."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import httpx2
import pytest

from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from tests.guards import ROOT, lacking
from tests.stack import START_S, free_port, wait_until

COMMIT = "89eebd45"
SEED = """
import json, sys
import django
django.setup()
from agents import keys
from reviews.people import tokens
from tests import factories
people = factories.cast()
factories.policy(people)
agent = factories.agent(people["owen"])
sys.stdout.write(json.dumps({
    "agent": keys.issue_key(agent=agent, by=people["owen"]),
    "person": tokens.create_token(person=people["rita"], name="script"),
}))
"""


def check_out(folder: Path) -> Path:
    """Its tree; a skip that names the commit where the history is not there."""
    code, tree = _git("archive", COMMIT)
    if code:
        _missing()
    with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*args: str) -> tuple[int, bytes]:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, check=False)
    return done.returncode, done.stdout


def _missing() -> NoReturn:
    """A copy that was cut short on purpose may lack it, a whole one must not."""
    what = f"commit {COMMIT} in this copy's history"
    if _git("rev-parse", "--is-shallow-repository") == (0, b"false\n"):
        lacking(what)
    pytest.skip(f"{what} is not there")


def python(source: Path, environ: Mapping[str, str], *args: str, told: str = "") -> str:
    """What one command of that tree says."""
    done = subprocess.run(
        [sys.executable, *args],
        cwd=source,
        env=dict(environ),
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def seed(source: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The cast, a policy and an agent by that tree's operations; two credentials."""
    settings = {"DJANGO_SETTINGS_MODULE": "hitl.settings"}
    said = python(source, {**environ, **settings}, "-", told=SEED)
    found: dict[str, str] = json.loads(said)
    return found


class Fleet:
    """Web processes and one worker at a time, each of one tree or the other."""

    def __init__(self, here: Layout, environ: Mapping[str, str], webs: int) -> None:
        self.here, self.environ = here, environ
        self.ports = [free_port() for _ in range(webs)]
        self.webs: dict[int, Child] = {}
        self.worker: Child | None = None

    def start_web(self, port: int, source: Path) -> None:
        environ = {**self.environ, "PORT": str(port)}
        program = installation.build_web_program(self.here, environ)
        self.webs[port] = Child(_of(program, source, f"web-{port}"))
        wait_until(lambda: _ready(port), START_S, lambda: self.log(f"web-{port}"))

    def replace_web(self, port: int, source: Path) -> None:
        """As a deployment does it: stop one, start its successor on the same port."""
        assert self.webs[port].stop(within=20)
        self.start_web(port, source)

    def replace_worker(self, source: Path) -> None:
        """The new one is there before the old one is told to go; whoever supervises it
        kills one that does not go, and what it held is done all the same."""
        before, seen = self.worker, self.log("worker").count(" ready.")
        program = installation.build_worker_program(self.here, self.environ)
        self.worker = Child(_of(program, source, "worker"))
        wait_until(lambda: self.log("worker").count(" ready.") > seen, START_S)
        if before is not None:
            before.stop(within=40)

    def stop(self) -> None:
        for child in [*self.webs.values(), *([self.worker] if self.worker else [])]:
            child.stop(within=20)

    def log(self, name: str) -> str:
        file = self.here.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""


def _of(program: Program, source: Path, name: str) -> Program:
    log = program.log.with_name(f"{name}.log") if program.log else None
    return replace(program, cwd=source, log=log)


def _ready(port: int) -> bool:
    try:
        answer = httpx2.get(f"http://{LOOPBACK}:{port}/readyz", trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200
