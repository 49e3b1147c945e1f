"""`client/examples/mcp_notes.py` as its text says to start it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.client.mcp.conftest import Bench
from tests.guards import ROOT
from tests.stack import PATIENCE_S

EXAMPLE = ROOT / "client" / "examples" / "mcp_notes.py"


@pytest.mark.servers
def test_the_example_calls_until_people_have_decided(bench: Bench) -> None:
    command = [sys.executable, str(EXAMPLE), "call", "ann", "Hello."]
    with subprocess.Popen(
        command,
        env=bench.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        bench.decide()
        said, logged = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, logged
    assert said.splitlines()[-1] == "sent to ann"
    assert "Sending to ann: Hello." in logged
