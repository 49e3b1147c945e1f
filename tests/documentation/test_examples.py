"""The examples of the documentation, run as they are written there, on the demo with
its agent at work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from counterseal_client.command_line.outcomes import ExitCode
from counterseal_conformance.people import Reviewer
from tests.client.command_line.shell import COMMAND
from tests.documentation.blocks import find_block
from tests.guards import ROOT
from tests.installations import copy_installation, environ, up
from tests.stack import free_port, wait_until

pytestmark = pytest.mark.servers
ID = re.compile(r"\b([pr]-[0-9a-z]{20})\b")


def list_steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the example, with the lines that it prints."""
    example = find_block("docs/command-line.md", "$ counterseal")
    for step in example.text.split("$ ")[1:]:
        command, *lines = step.splitlines()
        yield command, lines


@dataclass
class Reader:
    """Compares real lines with those of the page, whose ids stand for the real ones."""

    address: str
    ids: dict[str, str] = field(default_factory=dict)

    def localize(self, text: str) -> str:
        """A text of the page with the real address and the ids known so far."""
        text = text.replace("http://127.0.0.1:8000", self.address)
        return ID.sub(lambda found: self.ids.get(found[0], found[0]), text)

    def compare(self, lines: list[str], printed: str) -> None:
        """The lines of the page, in order; `...` stands for any lines."""
        real = iter(printed.splitlines())
        gap = False
        for line in lines:
            if line == "...":
                gap = True
                continue
            found = next(
                (one for one in real if not gap or self._is_same(line, one)), ""
            )
            assert self._is_same(line, found), (line, printed)
            gap = False
        assert gap or not list(real), printed

    def _is_same(self, line: str, found: str) -> bool:
        parts = ID.split(self.localize(line))
        unknown = [part for part in parts[1::2] if part not in self.ids.values()]
        pattern = "".join(
            "([pr]-[0-9a-z]{20})" if part in unknown else re.escape(part)
            for part in parts
        )
        match = re.fullmatch(pattern, found)
        if match:
            self.ids |= dict(zip(unknown, match.groups(), strict=True))
        return match is not None


@dataclass
class Demo:
    """A running demo, and a shell in which `counterseal` is installed."""

    state: Path
    address: str
    environ: dict[str, str]

    def localize(self, text: str) -> str:
        """A text of a page, with the addresses and files of this demo."""
        for there, here in {
            "/tmp/": f"{self.state.parent}/",  # first: the others may hold it
            "http://127.0.0.1:8000": self.address,
            "https://gate.example.com": self.address,
            ".venv/bin/python": sys.executable,
            "var/demo.json": str(self.state / "demo.json"),
        }.items():
            text = text.replace(there, here)
        return text

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.localize(script)],
            cwd=ROOT,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def find_reviewer(self) -> Reviewer:
        known = json.loads((self.state / "demo.json").read_text())
        return Reviewer(self.address, known["logins"]["reviewer"]["token"])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    state, port = folder / "state", free_port()
    copy_installation(state)
    programs = folder / "bin"
    programs.mkdir()
    counterseal = programs / "counterseal"
    counterseal.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    counterseal.chmod(0o755)
    environment = {
        **environ(state, port),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "client"),
        "LANG": "C.UTF-8",
    }
    with up(state, port, WEB_PROCESSES="1", RILEY="1"):
        yield Demo(state, f"http://127.0.0.1:{port}", environment)


@pytest.fixture(scope="module")
def reader(demo: Demo) -> Reader:
    """The example of docs/command-line.md has run."""
    reader = Reader(demo.address)
    for command, lines in list_steps():
        done = demo.run(reader.localize(command))
        proposes = "counterseal propose" in command
        code = ExitCode.WAITING if proposes else ExitCode.DONE
        assert done.returncode == code, done.stdout + done.stderr
        reader.compare(lines, done.stdout)
    return reader


def test_the_commands_run_as_they_are_written(reader: Reader) -> None:
    assert len(reader.ids) == 2  # a proposal and its request


def start_program(demo: Demo, key: str, *places: tuple[str, str]) -> Any:
    """Blocks of pages as one program. `act` and `message` are the reader's own."""
    own = (
        "from counterseal_client import Gate\n"
        f"key = {key!r}\n"
        f"gate = Gate({demo.address!r}, key)\n"
        "message = 'The screen is cracked.'\n"
        "act = lambda due: print(due.status)\n"
    )
    program = own + "".join(find_block(*place).text for place in places)
    return subprocess.Popen(
        [sys.executable, "-c", demo.localize(program)],
        cwd=ROOT,
        env=demo.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_programs_run_as_they_are_written(demo: Demo, reader: Reader) -> None:
    """One waits for the effect and resumes, the other is told why it was rejected."""
    done = demo.run("counterseal agents rotate-key ada --by adam")
    assert done.returncode == 0, done.stderr
    key = done.stdout.split()[-1]
    began, ends = ("docs/agents.md", "from counterseal"), ("docs/agents.md", "found =")
    told = ("client/README.md", "proposal = gate")
    cases = [
        ("order_78265", "approve", start_program(demo, key, began, ends), "executed"),
        (
            "order_78203",
            "reject",
            start_program(demo, key, told),
            "not_needed The photo shows no crack.",
        ),
    ]
    with closing(demo.find_reviewer()) as rita:
        try:
            for thread, verdict, program, _ in cases:
                decide(rita, thread, verdict, program)
            for _, _, program, said in cases:
                printed, _ = program.communicate(timeout=60)
                assert (program.returncode, printed.strip()) == (0, said)
        finally:
            for _, _, program, _ in cases:
                program.kill()


def decide(rita: Reviewer, thread: str, verdict: str, program: Any) -> None:
    """Give the verdict as soon as the program has proposed."""

    def has_proposed() -> bool:
        assert program.poll() is None, program.communicate()
        return bool(rita.list_requests("ada", thread))

    wait_until(has_proposed, 20)
    (request,) = rita.list_requests("ada", thread)
    answer = rita.decide(request["id"], verdict, "The photo shows no crack.")
    assert answer.status_code == 200, answer.text


def test_the_calls_of_authzen_run_as_they_are_written(demo: Demo) -> None:
    firsts = ("gate=http", ".venv/bin/python", "call $gate")
    ask, submit, poll = (find_block("docs/authzen.md", one).text for one in firsts)
    done = demo.run(f"set -e\n{ask}\n{submit}")
    assert done.returncode == 0, done.stderr
    denial = json.loads((demo.state.parent / "denial.json").read_text())
    assert denial["context"]["access_request"]
    # curl ends no line: the answers stand one behind the other.
    task = json.loads(done.stdout[done.stdout.rindex('{"task"') :])
    opening, _, _ = ask.partition("curl -s $gate")
    done = demo.run(opening + poll.replace("p-...", task["task"]["id"]))
    assert json.loads(done.stdout)["task"]["status"] == "pending"
