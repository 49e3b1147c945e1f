from __future__ import annotations

from typing import Any

from counterseal_client import AsyncGate, Gate
from counterseal_client.adapters.calls import NamedCall
from counterseal_client.adapters.coroutines import (
    AnyTool,
    propose_call,
    withdraw_proposal,
)
from tests.client.gate import KEY, LoopbackGate
from tests.client.offline import run_coroutine

CALL = NamedCall("t-1", "call_1", {})


async def propose_and_withdraw(tool: AnyTool, gate: LoopbackGate) -> Any:
    """The status of a withdrawn proposal of the tool."""
    proposal = await propose_call(tool, {"to": "ann"}, CALL)
    await withdraw_proposal(tool, proposal.id)
    return gate.proposals[proposal.id]["status"]


def test_a_proposal_of_a_blocking_tool_is_withdrawn(
    gate: LoopbackGate, client: Gate
) -> None:
    @client.tool()
    def send_note(to: str) -> None:
        """Send a note."""

    assert run_coroutine(propose_and_withdraw(send_note, gate)) == "withdrawn"


def test_a_proposal_of_an_async_tool_is_withdrawn(gate: LoopbackGate) -> None:
    async def run() -> Any:
        async with AsyncGate(gate.url, KEY) as client:

            @client.tool()
            async def send_note(to: str) -> None:
                """Send a note."""

            return await propose_and_withdraw(send_note, gate)

    assert run_coroutine(run()) == "withdrawn"
