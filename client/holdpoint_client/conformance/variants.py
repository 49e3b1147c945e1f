"""The frameworks that the kit runs, and the ways in which each of them pauses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which a framework pauses, checked by itself.

    `framework` is the kit's argument and the client's extra, `package` the one whose
    release a score names, `module` the agent in `agents`. `edits`: whether the
    framework alone lets people change the arguments of a call.
    """

    framework: str
    package: str
    module: str
    edits: bool = True


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
    """The variants of one framework."""
    return [name for name, found in VARIANTS.items() if found.framework == framework]
