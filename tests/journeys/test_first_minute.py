"""The first screen of the README, word for word: from nothing to the reader's own
function, held, approved in a browser, and run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page

from hitl.client_page import FIRST_CALL
from tests.guards import ROOT
from tests.stack import free_port, stop_process, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.browser]
SECTION = re.compile(r"^## Hold your own function\n(.*?)^## ", re.M | re.S)
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)
MOST_COMMANDS, MOST_LINES = 4, 5
PATIENCE_S = 240


@dataclass(frozen=True)
class FirstScreen:
    """What a reader types, which program they save under which name, and what it
    prints in the end."""

    commands: list[list[str]]
    program: str
    file: str
    result: str


def read_first_screen() -> FirstScreen:
    (text,) = SECTION.findall((ROOT / "README.md").read_text("utf-8"))
    blocks = BLOCK.findall(text)
    typed = "".join(body for kind, body in blocks if kind == "sh").splitlines()
    (program,) = (body for kind, body in blocks if kind == "python")
    (file,) = re.findall(r"as `(\w+\.py)`", text)
    (result,) = re.findall(r"the program prints `([^`]+)`", text)
    return FirstScreen([shlex.split(line) for line in typed], program, file, result)


FIRST = read_first_screen()


def test_it_is_short_and_installs_what_is_there() -> None:
    assert len(FIRST.commands) <= MOST_COMMANDS
    assert len([line for line in FIRST.program.splitlines() if line]) <= MOST_LINES
    assert FIRST.program == FIRST_CALL  # what `counterseal up` prints, too
    pip, up, run = FIRST.commands
    assert pip[:2] == ["pip", "install"]
    for project in pip[2:]:
        folder, _, extra = project.rstrip("]").partition("[")
        described = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        assert not extra or extra in described["project"]["optional-dependencies"]
    assert up[0] == "counterseal"
    assert run == ["python", FIRST.file]


@dataclass
class Reader:
    """Somebody in an empty folder, with an empty home."""

    home: Path
    port: str

    @property
    def environ(self) -> dict[str, str]:
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        state = str(self.home / "state")
        return {"HOME": str(self.home), "PATH": path, "PORT": self.port, "STATE": state}

    def install(self) -> None:
        """What the first command brings: `counterseal`, and a Python with it."""
        (self.home / "bin").mkdir()
        for name, words in (("python", ""), ("counterseal", "-m counterseal_client")):
            file = self.home / "bin" / name
            file.write_text(
                f'#!/bin/sh\nexport PYTHONPATH="{ROOT / "client"}:{ROOT}"\n'
                f'exec "{sys.executable}" -P {words} "$@"\n'
            )
            file.chmod(0o755)

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        with self.find_output(words).open("wb") as file:
            return subprocess.Popen(
                words,
                executable=str(self.home / "bin" / words[0]),
                cwd=self.home,
                env={**self.environ, "PYTHONUNBUFFERED": "1"},
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def find_output(self, words: list[str]) -> Path:
        return self.home / f"{words[0]}.txt"

    def wait_for(self, words: list[str], pattern: str) -> str:
        """What the running command printed, as soon as it is there."""
        file = self.find_output(words)
        wait_until(
            lambda: re.search(pattern, file.read_text()) is not None,
            PATIENCE_S,
            file.read_text,
        )
        found: str = re.findall(pattern, file.read_text())[0]
        return found


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    someone = Reader(tmp_path, str(free_port()))
    someone.install()
    return someone


def test_the_readers_own_function_waits_and_runs(reader: Reader, page: Page) -> None:
    _, up, run = FIRST.commands
    (reader.home / FIRST.file).write_text(FIRST.program)
    gate = program = reader.start(up)
    try:
        link = reader.wait_for(up, r"Sign in, once: (\S+)")
        reader.wait_for(up, r"Press Ctrl-C")
        known = reader.home / ".local/state/counterseal/gate.json"
        assert known.stat().st_mode & 0o777 == 0o600
        program = reader.start(run)
        reader.wait_for(run, r"waits for a decision")
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Issue credit").click()
        page.wait_for_url("**/requests/**")
        page.keyboard.press("a")
        page.get_by_test_id("panel").wait_for()
        page.keyboard.press("Control+Enter")
        assert program.wait(PATIENCE_S) == 0
        assert reader.find_output(run).read_text().splitlines()[-1] == FIRST.result
        url = json.loads(known.read_text())["url"]
        used = httpx2.get(link, trust_env=False)
        assert (used.status_code, url) == (404, link.partition("/sign-in/")[0])
        page.goto("about:blank")  # the stream of the page
    finally:
        stop_process(program, PATIENCE_S)
        stop_process(gate, PATIENCE_S)
    assert gate.returncode == 0
    assert not known.exists()
