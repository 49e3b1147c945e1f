"""What a machine may lack, and how much a run should prove."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
PROOF_LINES = "COUNTERSEAL_PROOF_LINES"
# The same engine twice: the first has no windows, and so no work with them.
CHROMIUMS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")


def lacking(what: str) -> NoReturn:
    """Skip, naming what is missing; on CI nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and CI must have it")
    pytest.skip(f"{what} is not there")


def shared_file(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        lacking(f"../shared/{name}")
    return path


def proving() -> bool:
    return os.environ.get("PROVE") == "1"


def proof_n(small: int, full: int) -> int:
    return full if proving() else small


def chromium() -> str:
    """The one that was named, or else the one that costs less to run."""
    named = os.environ.get("CHROMIUM")
    paths = [named] if named else CHROMIUMS
    found = next((path for path in paths if Path(path).exists()), None)
    if found is None:
        lacking(f"Chromium (apt-get install chromium, or CHROMIUM=<path>; no {paths})")
    return found


class Recorder:
    """Appends lines to the file that `make prove` turns into docs/proof.md, each with
    the test that measured it. Several processes append at once, each line in one
    write."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.by = request.node.nodeid

    def record(self, test_id: str, line: str) -> None:
        if path := os.environ.get(PROOF_LINES):
            entry = json.dumps({"id": test_id, "by": self.by, "line": line}) + "\n"
            with Path(path).open("a") as file:
                file.write(entry)
