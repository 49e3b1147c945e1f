"""What the adapters share, on a call that Mastra really kept as waiting: its run was
recorded from the real package (counterseal_conformance.recording). The kit runs
the adapter in the package itself: `make conformance ARGS=mastra`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client.adapters.test_decisions import RECORDED, keep_proposals
from tests.client.gate import GRANTED, KEY, REJECTION, LoopbackGate
from tests.client.typescript.node import Probe, Refused

(WAITING,) = json.loads((RECORDED / "mastra.json").read_text())["values"]


@pytest.mark.parametrize(
    ("facts", "decided"),
    [
        ({}, False),
        (GRANTED, True),
        ({"status": "rejected", "decision": REJECTION}, True),
        ({"returned": True}, True),
    ],
)
def test_a_call_goes_on_once_it_is_decided(
    probe: Probe, gate: LoopbackGate, facts: dict[str, Any], decided: bool
) -> None:
    keep_proposals(gate, {"call_1": WAITING}, **facts)
    given = {"url": gate.url, "key": KEY, "waiting": WAITING}
    found = probe.ask("findDecided", **given)
    assert (found is not None) is decided


def test_what_other_tools_suspend_with_is_left_alone(probe: Probe) -> None:
    assert probe.ask("isWaiting", value=WAITING)
    for value in ("yes", None, {}, [WAITING], {"type": "tool_approval"}):
        assert not probe.ask("isWaiting", value=value)


def test_the_model_reads_that_a_reviewer_changed_its_call(probe: Probe) -> None:
    result = {"value": {"sent": "ann"}, "args": {"to": "ann"}, "edited": False}
    assert probe.ask("formatResult", result=result) == '{"sent":"ann"}'
    text = probe.ask("formatResult", result={**result, "edited": True})
    assert text.startswith("A reviewer changed this call. Performed instead: ")
    assert text.endswith('{"to":"ann"}\n{"sent":"ann"}')


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 129, None, 7])
def test_a_run_needs_a_name_that_the_gate_takes(probe: Probe, name: Any) -> None:
    with pytest.raises(Refused, match=r"the memory thread is .* Choose such a name"):
        probe.ask("checkThread", name=name)
