"""Deep Agents: an agent whose tools are reviewed by `interrupt_on`, bare as the
documentation shows, or through Counterseal's middleware."""

from __future__ import annotations

import os
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"  # before the package is imported

from deepagents import create_deep_agent

from counterseal_client.adapters.deepagents import GateMiddleware, gate_subagents
from counterseal_client.adapters.langgraph import Graph, resume_graph

from ..scripting import TOOL_NAMES, Script, build_turn
from ..worker import Job, Report
from .langchain_agent import JumpingMiddleware, LangChainAgent, build_bare_tools
from .langchain_model import GatedTools, ScriptedModel, open_store, run_job

INNER = "inner"
DELEGATE: Script = [
    build_turn(("outer_1", "task", {"description": "Do it.", "subagent_type": INNER}))
]


class DeepAgent(LangChainAgent):
    """The agent. Deep Agents has LangChain's middleware in its batched mode."""

    def run(self, job: Job) -> Report:
        gated = GatedTools(job) if job.gated else None
        return run_job(
            self._build_graph(job, gated),
            job,
            gated.gate if gated else None,
            resume=resume_graph,
            answer_bare=self._answer_bare,
            build_raw=self._build_raw,
        )

    def _build_graph(self, job: Job, gated: GatedTools | None) -> Graph:
        """The same functions are tools with and without the gate."""
        hostile = [JumpingMiddleware()] if job.hostile else []
        options: dict[str, Any] = {"middleware": hostile}
        if gated is None:
            options["interrupt_on"] = self._configure(job, None)
        else:
            middleware = GateMiddleware(gated.gate, TOOL_NAMES, describe=gated.describe)
            options["middleware"] = [middleware, *hostile]
        tools, model = build_bare_tools(job), ScriptedModel(turns=job.script)
        if job.nested:
            inner = {
                "name": INNER,
                "description": "Does what is asked.",
                "system_prompt": "Do what is asked.",
                "model": model,
                "tools": tools,
            }
            options["subagents"] = (
                gate_subagents([inner], middleware) if gated else [inner]
            )
            tools, model = [], ScriptedModel(turns=DELEGATE)
        store = open_store(job)
        return create_deep_agent(model, tools, checkpointer=store, **options)


def build_agent(variant: str) -> DeepAgent:
    """The agent; there is one variant."""
    return DeepAgent(variant)
