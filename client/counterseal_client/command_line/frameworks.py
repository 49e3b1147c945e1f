"""The frameworks that `counterseal init` knows: what to install, which program it
writes, and how that is started. The pages of docs/frameworks begin with the same lines,
and a test compares them.

A program is an example of the client: it runs as it is, with a model that is a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
# A wheel has the programs inside the package.
EXAMPLES = HERE / "examples" if (HERE / "examples").is_dir() else HERE.parent


@dataclass(frozen=True, slots=True)
class Framework:
    """One row. `package` is the distribution of the framework and `minimum` its first
    release that the adapter takes; both are empty where none is needed, and the client
    then has no extra of the row's name. `start` holds the first call, `resume` goes on
    after the decision; a program without `resume` waits in its process. `server` starts
    what the framework needs beside the program, and `serve` the program's own server.
    `more` is installed beside the client."""

    name: str
    title: str
    file: str
    package: str = ""
    minimum: str = ""
    start: str = "start"
    resume: str = "resume"
    server: str = ""
    serve: str = ""
    more: str = ""
    page: str = ""

    @property
    def is_typescript(self) -> bool:
        return self.file.endswith(".ts")

    @property
    def page_name(self) -> str:
        """Its page in docs/frameworks."""
        return f"{self.page or self.name}.md"

    @property
    def install_command(self) -> str:
        if self.is_typescript:
            return f"npm install @counterseal/client {self.more}"
        client = "counterseal-client"
        client = f'"{client}[{self.name}]"' if self.package else client
        return " ".join(filter(None, ["pip install", client, self.more]))

    def build_command(self, words: str, file: str = "") -> str:
        """How a person starts the program with these words."""
        program = "node" if self.is_typescript else "python"
        return f"{program} {file or self.file} {words}".rstrip()

    def read_program(self) -> str:
        """The program that `counterseal init` writes."""
        for folder in ("", "examples", "typescript/examples"):
            path = EXAMPLES / folder / self.file
            if path.exists():
                return path.read_text(encoding="utf-8")
        raise FileNotFoundError(self.file)

    def find_version(self) -> str | None:
        """The installed version; None where there is none."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def is_too_old(self, version: str) -> bool:
        """Whether the adapter refuses this version."""
        return _parse_version(version) < _parse_version(self.minimum)


def _parse_version(text: str) -> tuple[int, ...]:
    """The numbers at the start of a version."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _build_table() -> dict[str, Framework]:
    """The rows by their names, which are those of the client's extras."""
    rows = (
        Framework(
            "langgraph", "LangGraph", "langgraph_agent.py", "langgraph", "1.2.22"
        ),
        Framework(
            "langchain",
            "LangChain",
            "langchain_agent.py",
            "langchain",
            "1.5.0",
            page="langgraph",
        ),
        Framework(
            "langchain-classic",
            "LangChain's older agents",
            "langchain_classic_agent.py",
            "langchain-classic",
            "1.0.8",
        ),
        Framework(
            "deepagents", "Deep Agents", "deepagents_agent.py", "deepagents", "0.7.32"
        ),
        Framework(
            "claude-agent-sdk",
            "Claude Agent SDK",
            "claude_agent.py",
            "claude-agent-sdk",
            "0.2.189",
            more="counterseal-conformance",
        ),
        Framework(
            "pydantic-ai",
            "Pydantic AI",
            "pydantic_ai_agent.py",
            "pydantic-ai-slim",
            "2.68.0",
        ),
        Framework(
            "openai-agents",
            "OpenAI Agents SDK",
            "openai_agents_agent.py",
            "openai-agents",
            "0.24.0",
        ),
        Framework("crewai", "CrewAI", "crewai_flow.py", "crewai", "1.15.30"),
        Framework(
            "google-adk", "Google ADK", "google_adk_agent.py", "google-adk", "2.13.0"
        ),
        Framework("agno", "Agno", "agno_agent.py", "agno", "3.1.10"),
        Framework("haystack", "Haystack", "haystack_agent.py", "haystack-ai", "3.4.1"),
        Framework(
            "llama-index",
            "LlamaIndex Workflows",
            "llama_index_workflow.py",
            "llama-index-workflows",
            "2.26.1",
        ),
        Framework(
            "temporal",
            "Temporal",
            "temporal_workflow.py",
            "temporalio",
            "1.35.0",
            server="temporal server start-dev",
            serve="serve",
        ),
        Framework("dbos", "DBOS", "dbos_workflow.py", "dbos", "3.4.0"),
        Framework(
            "restate",
            "Restate",
            "restate_agent.py",
            "restate-sdk",
            "1.3.0",
            server="restate-server",
            serve="serve",
            more="hypercorn",
        ),
        Framework("ag-ui", "AG-UI", "ag_ui_agent.py", "ag-ui-protocol", "1.0.0"),
        Framework(
            "prefect",
            "Prefect",
            "prefect_flow.py",
            "prefect",
            "3.9.1",
            resume="resume FLOW_RUN_ID",
            server="prefect server start",
            serve="serve",
        ),
        Framework(
            "humanlayer",
            "HumanLayer",
            "humanlayer_agent.py",
            start="",
            resume="",
        ),
        Framework(
            "mastra",
            "Mastra",
            "mastra-agent.ts",
            more="@mastra/core @mastra/libsql ai zod",
        ),
        Framework(
            "vercel-ai",
            "Vercel AI SDK",
            "ai-agent.ts",
            more="ai zod",
        ),
        Framework(
            "agent-framework",
            "Microsoft Agent Framework",
            "agent_framework_agent.py",
            "agent-framework-core",
            "1.23.0",
        ),
        Framework(
            "autogen", "AutoGen", "autogen_agent.py", "autogen-agentchat", "0.7.5"
        ),
        Framework(
            "semantic-kernel",
            "Semantic Kernel",
            "semantic_kernel_agent.py",
            "semantic-kernel",
            "1.45.0",
        ),
        Framework(
            "smolagents", "smolagents", "smolagents_agent.py", "smolagents", "1.26.0"
        ),
        Framework(
            "strands", "Strands Agents", "strands_agent.py", "strands-agents", "1.62.0"
        ),
        Framework(
            "mcp", "MCP", "mcp_notes.py", "mcp", "2.3.0", start="call", resume=""
        ),
    )
    return {row.name: row for row in rows}


FRAMEWORKS: Mapping[str, Framework] = _build_table()
