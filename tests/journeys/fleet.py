"""Web processes and a worker of several trees of the product, on one database."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx2

from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from tests.stack import START_S, free_port, wait_until

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
# A line of the log of requests, for people or as JSON.
SERVER_ERROR = re.compile(r"""\bstatus"?[=:] ?500\b""")


def run_python(
    source: Path, environ: Mapping[str, str], *args: str, program: str = ""
) -> str:
    """What a command of that tree prints."""
    done = subprocess.run(
        [sys.executable, *args],
        cwd=source,
        env=dict(environ),
        input=program,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def seed(source: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The cast, a policy and an agent by that tree's operations; two credentials."""
    settings = {"DJANGO_SETTINGS_MODULE": "hitl.settings"}
    printed = run_python(source, {**environ, **settings}, "-", program=SEED)
    secrets: dict[str, str] = json.loads(printed)
    return secrets


class Fleet:
    """Web processes and one worker at a time, each of one tree or another."""

    def __init__(self, here: Layout, environ: Mapping[str, str], webs: int) -> None:
        self.here, self.environ = here, environ
        self.ports = [free_port() for _ in range(webs)]
        self.webs: dict[int, Child] = {}
        self.worker: Child | None = None

    def start_web(self, port: int, source: Path) -> None:
        environ = {**self.environ, "PORT": str(port)}
        program = installation.build_web_program(self.here, environ)
        self.webs[port] = Child(_move(program, source, f"web-{port}"))
        wait_until(lambda: _is_ready(port), START_S, lambda: self.log(f"web-{port}"))

    def replace_web(self, port: int, source: Path) -> None:
        """As a deployment does it: stop one, start its successor on the same port."""
        assert self.webs[port].stop(within=20)
        self.start_web(port, source)

    def replace_worker(self, source: Path) -> None:
        """The new one is there before the old one is told to go; whoever supervises it
        kills one that does not go, and what it held is done all the same."""
        before, seen = self.worker, self.log("worker").count(" ready.")
        program = installation.build_worker_program(self.here, self.environ)
        self.worker = Child(_move(program, source, "worker"))
        wait_until(lambda: self.log("worker").count(" ready.") > seen, START_S)
        if before is not None:
            before.stop(within=40)

    def stop(self) -> None:
        for child in [*self.webs.values(), *([self.worker] if self.worker else [])]:
            child.stop(within=20)

    def log(self, name: str) -> str:
        file = self.here.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def list_server_errors(self) -> list[str]:
        """The requests that a web process answered with 500."""
        lines = [
            line for port in self.ports for line in self.log(f"web-{port}").splitlines()
        ]
        assert any("status" in line for line in lines), "requests are logged"
        return [line for line in lines if SERVER_ERROR.search(line)]


def _move(program: Program, source: Path, name: str) -> Program:
    log = program.log.with_name(f"{name}.log") if program.log else None
    return replace(program, cwd=source, log=log)


def _is_ready(port: int) -> bool:
    try:
        answer = httpx2.get(f"http://{LOOPBACK}:{port}/readyz", trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200
