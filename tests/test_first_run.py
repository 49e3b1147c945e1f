"""The first run: the page and the script have the same commands, and the script leads
from an empty database to an action that was held, decided and executed."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError

import counterseal_client
from agents import registry
from hitl import command_line
from hitl.environment import LOOPBACK
from hitl.local.keys import generate_key
from journal.errors import InvalidInput
from policies.management import lookups
from policies.models import QueueUserPermission
from tests import servers
from tests.documentation.blocks import read_blocks
from tests.guards import ROOT, proving
from tests.stack import free_port, stop_process, wait_until
from world.people import Session, build_verdict, list_requests

SCRIPT = ROOT / "deploy" / "first-run.sh"
PAGE = ROOT / "docs" / "first-run.md"
COMMAND = re.compile(r"(?:^|\|\| |\) )(counterseal (?!.* list\)).*?)(?: ;;)?$", re.M)
PASSWORD = "correct horse battery staple"
PEOPLE = 5


def list_commands(text: str) -> list[str]:
    return COMMAND.findall(text)


def list_steps() -> list[str]:
    """The commands of the page up to the agent."""
    steps = PAGE.read_text().partition("6. See whether")[0]
    blocks = read_blocks("docs/first-run.md", steps)
    return list_commands("".join(block.text for block in blocks))


def test_the_page_has_the_commands_of_the_script_in_their_order() -> None:
    assert list_steps() == list_commands(SCRIPT.read_text())
    assert len(list_steps()) == 9


def test_the_commands_of_the_page_lead_from_nobody_to_an_agent(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(SCRIPT.parent)
    for command in list_steps()[1:]:  # the tables are there
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
        words, entry, rest = command_line.find_entry(shlex.split(command)[1:])
        command_line.run_command(words, entry, rest)
    said = capsys.readouterr().out
    assert "policy v1 is active" in said
    assert re.search(r"^cs_\S+$", said, re.M)
    admitted = QueueUserPermission.objects.values_list("user__username", flat=True)
    assert set(admitted) == {"rita", "sue"}


def test_each_dead_end_names_the_next_step(db: None) -> None:
    with pytest.raises(CommandError, match="Save one first: counterseal policy load"):
        lookups.load_queues_by_name([], every=True)
    with pytest.raises(InvalidInput) as refused:
        registry.match_tools(["*"])
    assert "counterseal policy load --by" in str(refused.value.errors)


@contextmanager
def create_database(name: str) -> Iterator[str]:
    """An empty database on the server of the tests: its address."""
    url = settings.COUNTERSEAL.database_url
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


class Host:
    """One host of an installation of production, with the command in its PATH."""

    def __init__(self, folder: Path, database_url: str) -> None:
        program = folder / "counterseal"
        self.program = str(program)
        program.write_text(
            f'#!/bin/sh\nexec {sys.executable} -m counterseal_client "$@"\n'
        )
        program.chmod(0o755)
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.environ = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
            "DEPLOYMENT": "production",
            "BASE_URL": self.url,
            "DATABASE_URL": database_url,
            "REDIS_URL": servers.with_number(settings.COUNTERSEAL.redis_url, "gw13"),
            "STATE": str(folder / "state"),
            "SECRET_KEY": generate_key() * 2,
            "DATA_KEY": generate_key(),
            "TAG_KEY": generate_key(),
            "GRANT_KEY": generate_key(),
            "WEBHOOK_SECRET": f"whsec_{generate_key()}",
            "LOG_LEVEL": "WARNING",
        }

    def run(self, *words: str, said: str = "", **more: str) -> str:
        done = subprocess.run(
            words,
            env={**self.environ, **more},
            input=said,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def serve(self) -> Iterator[None]:
        words = ["counterseal", "serve", "--port", str(self.port)]
        words[0] = self.program
        web = subprocess.Popen(words, env=self.environ)
        try:
            wait_until(self._answers, 90)
            yield
        finally:
            stop_process(web, 10)

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/livez", trust_env=False).status_code == 200
        except httpx2.HTTPError:
            return False


def perform_first_action(host: Host, key: str) -> None:
    """What the page ends with: the call waits, Rita approves it, the function runs."""
    credited = []
    with counterseal_client.Gate(host.url, key) as gate:

        @gate.tool
        def issue_credit(customer: str, amount: str, currency: str) -> str:
            """Credit a customer."""
            credited.append(customer)
            return f"{amount} {currency} for {customer}"

        call = {"customer": "c-1", "amount": "20.00", "currency": "USD"}
        held = issue_credit.propose(call, thread="order-1", call_id="1")
        assert (held.status, credited) == ("pending", [])
        with ThreadPoolExecutor() as pool:
            done = pool.submit(issue_credit.call, call, thread="order-1", call_id="1")
            wait_until(lambda: approve(host) == 200, 60)
            assert done.result(60) == "20.00 USD for c-1"
        assert gate.get(held.id).status == "executed"
    assert credited == ["c-1"]


def approve(host: Host) -> int:
    rita = Session("rita", PASSWORD)
    with rita._http:
        rita.post(host.url, "/sign-in/")
        (request,) = list_requests(
            lambda method, path, **more: rita.get(host.url, f"/api/v1{path}")
        )
        path = f"/api/v1/requests/{request['id']}/decide"
        answer = rita.post(host.url, path, json=build_verdict(request, "approve"))
    assert answer.status_code in {200, 409}, answer.text
    return answer.status_code


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.skipif(not proving(), reason="`make prove` runs every command of it")
def test_the_script_leads_to_the_first_executed_action(
    tmp_path: Path, record_proof: Callable[[str, str], None]
) -> None:
    began = time.monotonic()
    with create_database("counterseal_first_run") as url:
        host = Host(tmp_path, url)
        said = host.run("sh", str(SCRIPT), said=f"{PASSWORD}\n" * PEOPLE)
        (key,) = re.findall(r"^cs_\S+$", said, re.M)
        with host.serve():
            perform_first_action(host, key)
        seconds = time.monotonic() - began
        again = host.run("sh", str(SCRIPT))
        assert " is " not in again
        assert "cs_" not in again
    record_proof(
        "T27",
        f"deploy/first-run.sh on an empty database, settings of production: first"
        f" action held, decided and executed over HTTP after {seconds:.0f} s, and a"
        " second run changed nothing",
    )
