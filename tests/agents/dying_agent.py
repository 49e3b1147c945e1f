"""The example agent of the client, which dies by SIGKILL at one point of its work.

python tests/agents/dying_agent.py <point> <url> <key> <thread> <file>
"""

from __future__ import annotations

import os
import runpy
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import httpx2

EXAMPLE = Path(__file__).parents[2] / "client" / "examples" / "acts_once.py"
POINTS = {
    "asking": "the outcome is asked for",
    "received": "the outcome is here, nothing is kept yet",
    "named": "its name is written, the work is not, nothing is committed",
    "worked": "name and work are written, not committed",
    "committed": "name and work are committed, nobody was told",
    "acknowledging": "the gate was told, its answer is lost",
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(sqlite3.Connection):
    """Counts what is written, and dies in between."""

    point = ""

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if self.point == "received":
            die()
        done = super().execute(*args)
        if (self.point, "work" in args[0]) in {("named", False), ("worked", True)}:
            die()
        return done

    def __exit__(self, *args: Any) -> Any:
        done = super().__exit__(*args)
        if self.point == "committed":
            die()
        return done


def arm(point: str) -> None:
    """Let this process die there."""
    connect, send = sqlite3.connect, httpx2.Client.send
    Deadly.point = point

    def sent(
        self: httpx2.Client, request: httpx2.Request, **more: Any
    ) -> httpx2.Response:
        answer = send(self, request, **more)
        tells = request.url.path.endswith("/acknowledge")
        if point == ("acknowledging" if tells else "asking"):
            die()
        return answer

    sqlite3.connect = lambda file: connect(file, factory=Deadly)  # type: ignore[assignment]
    httpx2.Client.send = sent  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(sys.argv[1])
    sys.argv = [str(EXAMPLE), *sys.argv[2:]]
    runpy.run_path(str(EXAMPLE), run_name="__main__")
