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
from tests.guards import ROOT
from tests.servers import FILLED

TOLD = "retail, "


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_the_store_ends_the_same_under_faults(
    data: Path, proof_n: Callable[..., int], say: Callable[[str], None]
) -> None:
    size = ["--short"] * proof_n(1, 0)  # a tenth of the tasks, or every one
    done = subprocess.run(
        [sys.executable, "-m", "chaos", "--retail", *size],
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
