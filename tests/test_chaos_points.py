"""Whoever freezes at a named point is found and goes on, also when its flag was taken
down at that very moment: it would stand still for the rest of the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos import cluster, nemesis
from chaos.cluster import Slot, Stage
from chaos.nemesis import Arsenal
from chaos.network import Network
from chaos.options import BETWEEN, SHORT, Options
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from tests.guards import ROOT
from tests.stack import wait_until

OPTIONS = Options(**SHORT, between=BETWEEN[True], seed=7, short=True)  # type: ignore[arg-type]
PASSES = f"""
from journal import failpoints
for name in {nemesis.HOLDING!r}:
    failpoints.point(name)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(Layout(tmp_path, tmp_path), OPTIONS, Network(), [], 0)
    made.faults.mkdir()
    yield made
    for slot in made.slots.values():
        slot.kill()


def passing(stage: Stage) -> Slot:
    """A process that comes by every point at which somebody holds a claim."""
    env = {**os.environ, "HOLDPOINT_FAULT": str(stage.faults)}
    program = Program("worker-0", [sys.executable, "-c", PASSES], env, cwd=ROOT)
    return stage.launch("worker-0", lambda: Child(program))


def frozen(slot: Slot) -> bool:
    return cluster.stopped_group(slot.child.pid) == slot.child.pid


def test_who_froze_after_its_flag_was_taken_down_goes_on(stage: Stage) -> None:
    arsenal = Arsenal(stage, OPTIONS)
    arsenal._points.holding("pause")
    slot = passing(stage)
    wait_until(lambda: frozen(slot), 10)
    arsenal._points.disarm()
    arsenal.step(striking=False)
    (strike,) = arsenal.strikes
    assert (strike.kind, strike.pids) == ("pause", (slot.child.pid,))
    assert slot.frozen
    arsenal.stand_down()
    assert slot.child.process.wait(10) == 0
    assert not slot.frozen


def test_who_is_frozen_counts_once(stage: Stage) -> None:
    arsenal = Arsenal(stage, OPTIONS)
    arsenal._points.holding("pause")
    slot = passing(stage)
    wait_until(lambda: frozen(slot), 10)
    for _ in range(3):
        arsenal.step(striking=False)
    assert len(arsenal.strikes) == 1
    assert not list(arsenal._points.met())
