"""Calls of both kinds of tools from a framework that awaits its tools."""

from __future__ import annotations

import asyncio
from typing import Any

from counterseal_client.gated_tools import AsyncGatedTool, GatedTool
from counterseal_client.models import Proposal
from counterseal_client.tools import ToolResult

from .calls import NamedCall

AnyTool = GatedTool[..., Any] | AsyncGatedTool[..., Any]


async def perform_call(
    tool: AnyTool, arguments: dict[str, Any], call: NamedCall
) -> ToolResult:
    """As `GatedTool.perform` with no wait for people. A tool of `Gate` runs in a
    thread, so that it keeps nothing else of the loop waiting."""
    if isinstance(tool, AsyncGatedTool):
        return await tool.perform(arguments, **call.names, wait_seconds=0)
    return await asyncio.to_thread(
        tool.perform, arguments, **call.names, wait_seconds=0
    )


async def propose_call(
    tool: AnyTool, arguments: dict[str, Any], call: NamedCall
) -> Proposal:
    """As `GatedTool.propose`."""
    if isinstance(tool, AsyncGatedTool):
        return await tool.propose(arguments, **call.names)
    return await asyncio.to_thread(tool.propose, arguments, **call.names)


async def withdraw_proposal(tool: AnyTool, proposal: str) -> None:
    if isinstance(tool, AsyncGatedTool):
        await tool.withdraw(proposal)
    else:
        await asyncio.to_thread(tool.withdraw, proposal)
