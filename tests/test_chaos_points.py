"""Whoever freezes at a named point is found and goes on, also when its flag was taken
down at that very moment: it would stand still for the rest of the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cluster import Cluster, Slot, find_stopped_group
from chaos.nemesis import HOLDING, Nemesis
from chaos.network import Network
from chaos.options import BETWEEN, SHORT, Options
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from tests.guards import ROOT
from tests.stack import wait_until

OPTIONS = Options(**SHORT, between=BETWEEN[True], seed=7, short=True)  # type: ignore[arg-type]
PASSES = f"""
from journal import failpoints
for name in {HOLDING!r}:
    failpoints.point(name)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(Layout(tmp_path, tmp_path), OPTIONS, Network(), [], 0)
    made.fault_points.mkdir()
    yield made
    for slot in made.slots.values():
        slot.kill()


def passing(cluster: Cluster) -> Slot:
    """A process that comes by every point at which somebody holds a claim."""
    env = {**os.environ, "COUNTERSEAL_FAULT": str(cluster.fault_points)}
    program = Program("worker-0", [sys.executable, "-c", PASSES], env, cwd=ROOT)
    return cluster.launch("worker-0", lambda: Child(program))


def frozen(slot: Slot) -> bool:
    return find_stopped_group(slot.child.pid) == slot.child.pid


def test_who_froze_after_its_flag_was_taken_down_goes_on(cluster: Cluster) -> None:
    nemesis = Nemesis(cluster, OPTIONS)
    nemesis._points.holding("pause")
    slot = passing(cluster)
    wait_until(lambda: frozen(slot), 10)
    nemesis._points.disarm()
    nemesis.step(injecting=False)
    (fault,) = nemesis.faults
    assert (fault.kind, fault.pids) == ("pause", (slot.child.pid,))
    assert slot.frozen
    nemesis.stand_down()
    assert slot.child.process.wait(10) == 0
    assert not slot.frozen


def test_who_is_frozen_counts_once(cluster: Cluster) -> None:
    nemesis = Nemesis(cluster, OPTIONS)
    nemesis._points.holding("pause")
    slot = passing(cluster)
    wait_until(lambda: frozen(slot), 10)
    for _ in range(3):
        nemesis.step(injecting=False)
    assert len(nemesis.faults) == 1
    assert not list(nemesis._points.met())
