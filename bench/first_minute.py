"""The first minute of somebody new, by the clock: `python -m bench.first_minute`.

It wants an environment in which the server and the client are installed, as the README
says: `--bin` is its folder of programs. Each trial has an empty home, starts
`counterseal up --solo`, makes a call, and approves it in Chromium by two strokes. The
times are those of the machine: nobody reads meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from hitl.client_page import FIRST_CALL
from tests.guards import ROOT, chromium
from tests.stack import free_port, stop_process, wait_until

PATIENCE_S = 300.0
STOP_S = 20.0
EXAMPLE = ROOT / "client" / "examples" / "langgraph_agent.py"
HOOK_INPUT = {
    "session_id": "first-minute",
    "transcript_path": "",
    "cwd": "/srv/shop",
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "git push origin main"},
    "tool_use_id": "toolu_1",
}


@dataclass
class Trial:
    """One start from nothing. `seconds` has each step, from the start on."""

    bin: Path
    home: Path
    stack: ExitStack
    port: str = field(default_factory=lambda: str(free_port()))
    began: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)

    def start(self, name: str, *words: str, text: str = "") -> subprocess.Popen[bytes]:
        """Start a program whose output is in a file of this name."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        environ = {"HOME": str(self.home), "PATH": path, "PORT": self.port}
        (self.home / f"{name}.in").write_text(text)
        with (
            self.file(name).open("wb") as out,
            (self.home / f"{name}.in").open() as in_,
        ):
            process = subprocess.Popen(  # noqa: S603
                [str(self.bin / words[0]), *words[1:]],
                cwd=self.home,
                env={**environ, "PYTHONUNBUFFERED": "1"},
                stdin=in_,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.stack.callback(stop_process, process, STOP_S)
        return process

    def file(self, name: str) -> Path:
        return self.home / f"{name}.txt"

    def find(self, name: str, pattern: str) -> str:
        """What the program printed, as soon as it is there."""
        file = self.file(name)
        wait_until(
            lambda: bool(re.search(pattern, file.read_text())),
            PATIENCE_S,
            file.read_text,
        )
        found: str = re.findall(pattern, file.read_text())[0]
        return found

    def mark(self, step: str) -> None:
        self.seconds[step] = time.monotonic() - self.began

    def read_key(self) -> tuple[str, str]:
        kept = json.loads(
            (self.home / ".local/state/counterseal/gate.json").read_text()
        )
        return kept["url"], kept["key"]


def call_function(trial: Trial) -> Callable[[], None]:
    """The README's program; returns what waits for its result."""
    (trial.home / "credit.py").write_text(FIRST_CALL)
    program = trial.start("call", "python", "credit.py")
    trial.find("call", "waits for a decision")
    return lambda: _finish(program)


def call_langgraph(trial: Trial) -> Callable[[], None]:
    """The example of LangGraph: its process ends while people decide."""
    words = [*trial.read_key(), "order_1", str(trial.home / "kept")]
    _finish(trial.start("call", "python", str(EXAMPLE), "start", *words))
    resume = ["python", str(EXAMPLE), "resume", *words]
    return lambda: _finish(trial.start("resumed", *resume))


def call_hook(trial: Trial) -> Callable[[], None]:
    """The hook, as Claude Code runs it before a command of the shell."""
    text = json.dumps({**HOOK_INPUT, "cwd": str(trial.home)})
    hook = trial.start("call", "counterseal", "hook", "claude-code", text=text)

    def finish() -> None:
        _finish(hook)
        assert '"allow"' in trial.file("call").read_text(), trial.file("call")

    return finish


CASES: Mapping[str, Callable[[Trial], Callable[[], None]]] = {
    "function": call_function,
    "langgraph": call_langgraph,
    "claude-code": call_hook,
}


def _finish(process: subprocess.Popen[bytes]) -> None:
    assert process.wait(PATIENCE_S) == 0, process.args


def run_trial(case: str, folder: Path, browser: Browser) -> dict[str, float]:
    """Seconds from the start of `up` to each step."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        trial = Trial(folder, Path(home), stack)
        trial.start("up", "counterseal", "up", "--solo")
        link = trial.find("up", r"Sign in, once: (\S+)")
        trial.find("up", "Press Ctrl-C")
        trial.mark("up")
        finish = CASES[case](trial)
        page = browser.new_page()
        stack.callback(page.close)
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        page.locator("a[href^='/requests/']").first.click()
        page.wait_for_url("**/requests/**")
        trial.mark("held and open")
        page.keyboard.press("a")
        page.get_by_test_id("panel").wait_for()
        page.keyboard.press("Control+Enter")
        finish()
        trial.mark("performed")
        return trial.seconds


def main(arguments: Sequence[str]) -> None:
    """Print each trial, and the median of each step."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_minute")
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    given = parser.parse_args(arguments)
    for case in given.cases:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox"]
            )
            trials = [run_trial(case, given.bin, browser) for _ in range(given.times)]
        for step in trials[0]:
            times = sorted(trial[step] for trial in trials)
            shown = ", ".join(f"{seconds:.1f}" for seconds in times)
            sys.stdout.write(
                f"{case:<12} {step:<14} {median(times):5.1f} s ({shown})\n"
            )
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
