"""Deep Agents: an agent whose tools are reviewed by `interrupt_on`, bare as the
documentation shows, or through Counterseal's middleware."""

from __future__ import annotations

import os
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"  # before the package is imported

from deepagents import create_deep_agent

from counterseal_client.adapters.deepagents import GateMiddleware, gate_subagents
from counterseal_client.adapters.langgraph import Graph, describe_call, resume_graph

from ..scripting import TOOL_NAMES, Script, build_turn
from . import langchain_agent
from .langchain_agent import JumpingMiddleware, build_bare_tools
from .langchain_model import ScriptedModel, open_store

INNER = "inner"
DELEGATE: Script = [
    build_turn(("outer_1", "task", {"description": "Do it.", "subagent_type": INNER}))
]


class Driver(langchain_agent.Driver):
    """The agent. Deep Agents has LangChain's middleware in its batched mode."""

    resume = staticmethod(resume_graph)

    def build_graph(self) -> Graph:
        """The same functions are tools with and without the gate."""
        job = self.job
        hostile = [JumpingMiddleware()] if job.hostile else []
        options: dict[str, Any] = {"middleware": hostile}
        if self.gated is None:
            options["interrupt_on"] = self.configure_bare()
        else:
            describe = self.gated.extend(describe_call)
            gate = GateMiddleware(self.gated.gate, TOOL_NAMES, describe=describe)
            options["middleware"] = [gate, *hostile]
        tools, model = build_bare_tools(job), ScriptedModel(script=job.script)
        if job.nested:
            inner = {
                "name": INNER,
                "description": "Does what is asked.",
                "system_prompt": "Do what is asked.",
                "model": model,
                "tools": tools,
            }
            options["subagents"] = (
                gate_subagents([inner], gate) if self.gated else [inner]
            )
            tools, model = [], ScriptedModel(script=DELEGATE)
        store = open_store(job)
        return create_deep_agent(model, tools, checkpointer=store, **options)
