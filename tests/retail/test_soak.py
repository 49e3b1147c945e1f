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

TOLD = "retail, "


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
    said = done.stdout.splitlines()
    broken = [line for line in said if line.startswith("BROKEN")] or said[-5:]
    assert done.returncode == 0, "\n".join([*broken, done.stderr[-2000:]])
    line = next(one for one in said if one.startswith(TOLD))
    for kind in (
        FAULT_KINDS.keys() - NETWORK_KINDS
    ):  # these only where the machine permits them
        assert f" x {kind}" in line
    say(line.removeprefix(TOLD))


def _environ() -> dict[str, str]:
    """As a terminal would give it: nothing of the servers of these tests."""
    filled = {FILLED, "STATE", *os.environ.get(FILLED, "").split()}
    kept = {name: value for name, value in os.environ.items() if name not in filled}
    return kept | {"PYTHONPATH": str(ROOT / "client")}
