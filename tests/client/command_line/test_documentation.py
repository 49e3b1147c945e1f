"""The example of docs/command-line.md, run as it is written there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from counterseal_client.command_line.outcomes import ExitCode
from tests.client.command_line.shell import COMMAND
from tests.guards import ROOT
from tests.installations import copy_installation, environ, up
from tests.stack import free_port

PAGE = ROOT / "docs" / "command-line.md"
EXAMPLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
ID = re.compile(r"\b([pr]-[0-9a-z]{20})\b")


def list_steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the example, with the lines that it prints."""
    (example,) = EXAMPLE.findall(PAGE.read_text())
    for step in example.split("$ ")[1:]:
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


@pytest.mark.servers
def test_the_example_runs_as_it_is_written(tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    copy_installation(state)
    programs = tmp_path / "bin"
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
    reader = Reader(f"http://127.0.0.1:{port}")
    with up(state, port, WEB_PROCESSES="1"):
        for command, lines in list_steps():
            command = reader.localize(command)
            command = command.replace(".venv/bin/python", sys.executable)
            command = command.replace("var/demo.json", str(state / "demo.json"))
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=90,
            )
            proposes = "counterseal propose" in command
            code = ExitCode.WAITING if proposes else ExitCode.DONE
            assert done.returncode == code, done.stdout + done.stderr
            reader.compare(lines, done.stdout)
    assert len(reader.ids) == 2  # a proposal and its request
