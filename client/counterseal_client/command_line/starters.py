"""The first lines of an agent, as `counterseal init` writes them: one tool of the
policy behind the gate, as a plain function or in a framework. They run as they are,
with a function that only prints."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from ..models import ToolDeclaration

TYPES: Mapping[str, tuple[str, Any]] = {
    "string": ("str", "..."),
    "integer": ("int", 1),
    "number": ("float", 1.5),
    "boolean": ("bool", False),
    "array": ("list[Any]", []),
    "object": ("dict[str, Any]", {}),
}
"""For each type of JSON Schema, the annotation and an example."""

SAFE_EXAMPLE = re.compile(r"[A-Za-z0-9_.-]+")
"""A value of the policy that can stand in a command and in a docstring as it is."""

_TOOL = '''\
@gate.tool
def $name($parameters) -> dict[str, Any]:
    """$title."""
    # The effect: replace this line by yours, and give the key to the service. The gate
    # calls this function only if the policy has the agent perform the tool.
    sys.stdout.write(f"Performing $name under {get_claim().idempotency_key}\\n")
    return {"printed": True}
'''

FUNCTION = (
    '''\
"""$name behind the gate.

    python $file RUN '$example'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from counterseal_client import Gate, ToolError, get_claim

gate = Gate()


'''
    + _TOOL
    + '''

def main(run: str, arguments: str) -> None:
    """Call the tool once, and wait for the people whom the policy asks."""
    with gate, gate.thread(run, rationale="Started by hand."):
        try:
            result = $name(**json.loads(arguments))
        except ToolError as error:
            sys.exit(str(error))
    sys.stdout.write(f"{result}\\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
'''
)

LANGGRAPH = (
    '''\
"""A LangGraph agent with $name behind the gate.

    pip install "counterseal-client[langgraph]"
    python $file start RUN '$example'
    python $file resume RUN
"""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.langgraph import build_tool, resume_graph

gate = Gate()


'''
    + _TOOL
    + '''

def call_model(state: MessagesState) -> dict[str, Any]:
    """Stands for your chat model: it calls the tool with what it was asked for."""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage):
        return {"messages": [AIMessage("Done.")]}
    call = {"id": "call_1", "name": "$name", "args": json.loads(str(last.content))}
    return {"messages": [AIMessage("I was asked to.", tool_calls=[call])]}


graph = StateGraph(MessagesState)
graph.add_node("model", call_model)
graph.add_node("tools", ToolNode([build_tool($name)]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
store = sqlite3.connect("$stem.sqlite3", check_same_thread=False)
agent = graph.compile(checkpointer=SqliteSaver(store))


def main(action: str, run: str, arguments: str = "") -> None:
    """Start a run, or resume it once people have decided, in any process."""
    config: Any = {"configurable": {"thread_id": run}}
    if action == "start":
        agent.invoke({"messages": [HumanMessage(arguments)]}, config)
    else:
        resume_graph(agent, config, gate, wait_seconds=60)
    for waiting in agent.get_state(config).interrupts:
        sys.stdout.write(f"Waits for people: {waiting.value['url']}\\n")
    for message in agent.get_state(config).values["messages"][2:]:
        sys.stdout.write(f"{message.content}\\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
'''
)

LANGCHAIN = (
    '''\
"""A LangChain agent with $name behind the gate.

    pip install "counterseal-client[langchain]"
    python $file start RUN '$example'
    python $file resume RUN
"""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.langchain import resume_agent, review_by_gate
from counterseal_client.adapters.langgraph import build_tool

gate = Gate()


'''
    + _TOOL
    + '''

class ScriptedModel(BaseChatModel):
    """Stands for your chat model: it calls the tool with what it was asked for."""

    _llm_type = "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        answer = AIMessage("Done.")
        if isinstance(last, HumanMessage):
            args = json.loads(str(last.content))
            call = {"id": "call_1", "name": "$name", "args": args}
            answer = AIMessage("I was asked to.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


store = sqlite3.connect("$stem.sqlite3", check_same_thread=False)
agent = create_agent(
    ScriptedModel(),
    tools=[build_tool($name)],
    middleware=[
        HumanInTheLoopMiddleware(
            {"$name": review_by_gate($name)}, interrupt_mode="per_call"
        )
    ],
    checkpointer=SqliteSaver(store),
)


def main(action: str, run: str, arguments: str = "") -> None:
    """Start a run, or resume it once people have decided, in any process."""
    config: Any = {"configurable": {"thread_id": run}}
    if action == "start":
        agent.invoke({"messages": [HumanMessage(arguments)]}, config)
    else:
        resume_agent(agent, config, gate, wait_seconds=60)
    if agent.get_state(config).interrupts:
        sys.stdout.write("Waits for people.\\n")
    for message in agent.get_state(config).values["messages"][2:]:
        sys.stdout.write(f"{message.content}\\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
'''
)

STARTERS: Mapping[str, str] = {
    "function": FUNCTION,
    "langgraph": LANGGRAPH,
    "langchain": LANGCHAIN,
}
"""For each framework, the program."""


def build_starter(framework: str, tool: ToolDeclaration, file: str) -> str:
    """The program of one framework for one tool. `file` is its own name."""
    fields = list_required_fields(tool)
    example = json.dumps({name: example for name, _, example in fields})
    return Template(STARTERS[framework]).substitute(
        name=tool.name,
        title=build_title(tool),
        parameters=", ".join(f"{name}: {hint}" for name, hint, _ in fields),
        example=example,
        file=file,
        stem=file.removesuffix(".py"),
    )


def build_title(tool: ToolDeclaration) -> str:
    """The tool's title as the words of a docstring, which it cannot leave."""
    words = "".join(c for c in tool.title if c.isalnum() or c in " ,-").strip()
    return words or tool.name


def list_required_fields(tool: ToolDeclaration) -> list[tuple[str, str, Any]]:
    """Name, annotation and example of each argument that a call must have."""
    properties = tool.arguments.get("properties", {})
    return [
        (name, *_find_type(properties.get(name, {})))
        for name in tool.arguments.get("required", ())
    ]


def _find_type(schema: Any) -> tuple[str, Any]:
    schema = schema if isinstance(schema, dict) else {}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        texts = all(isinstance(choice, str) for choice in choices)
        plain = [choice for choice in choices if SAFE_EXAMPLE.fullmatch(str(choice))]
        return ("str" if texts else "Any"), plain[0] if plain else "..."
    kind = schema.get("type")
    return TYPES.get(kind, ("Any", None)) if isinstance(kind, str) else ("Any", None)


def find_writable_tools(tools: Sequence[ToolDeclaration]) -> list[ToolDeclaration]:
    """The tools that a Python function can have the signature of, those first that
    people are asked about."""
    found = [tool for tool in tools if _is_writable(tool)]
    return sorted(found, key=lambda tool: tool.tier in ("auto", "notify"))


def _is_writable(tool: ToolDeclaration) -> bool:
    names = [tool.name, *(name for name, _, _ in list_required_fields(tool))]
    plain = all(name.isidentifier() and name.isascii() for name in names)
    return plain and not any(keyword.iskeyword(name) for name in names)
