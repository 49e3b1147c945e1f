"""The retail acceptance run while everything is killed: the soak's stage and its faults
(`make chaos RETAIL=1`), on servers of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.options import FAULT_KINDS, NETWORK_KINDS
from tests import guards
from tests.guards import ROOT
from tests.servers import FILLED

PREFIX = "retail, "


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    not guards.proving(),
    reason="`make prove` runs it: at a small number, `make chaos SHORT=1` has the same"
    " faults and test_retail.py the same store",
)
def test_the_store_ends_the_same_under_faults(
    data: Path, say: Callable[[str], None]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chaos", "--retail"],
        cwd=ROOT,
        env=_environ(),
        capture_output=True,
        text=True,
    )
    printed = done.stdout.splitlines()
    broken = [line for line in printed if line.startswith("BROKEN")] or printed[-5:]
    assert done.returncode == 0, "\n".join([*broken, done.stderr[-2000:]])
    line = next(line for line in printed if line.startswith(PREFIX))
    # Network faults only where the machine permits them.
    for kind in FAULT_KINDS.keys() - NETWORK_KINDS:
        assert f" x {kind}" in line
    say(line.removeprefix(PREFIX))


def _environ() -> dict[str, str]:
    """As a terminal would give it: nothing of the servers of these tests."""
    filled = {FILLED, "STATE", *os.environ.get(FILLED, "").split()}
    others = {name: text for name, text in os.environ.items() if name not in filled}
    return others | {"PYTHONPATH": str(ROOT / "client")}
