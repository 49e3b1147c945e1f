"""LangGraph: a graph that interrupts before its effect, and a command that resumes it.

Each client has a connection and a PostgresSaver of its own. One action is a thread:
`invoke` until the interrupt, and `invoke` with the decision until the end. LangGraph's
own defaults apply (durability `async`: an `invoke` returns once its checkpoints are
written).
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from .stretch import StretchOptions, print_stretch, read_options

DECISION = {"verdict": "approve", "reviewer": "rita"}


class RefundState(TypedDict, total=False):
    proposal: dict[str, Any]
    decision: dict[str, Any]
    result: dict[str, Any]


def ask_reviewer(state: RefundState) -> RefundState:
    return {"decision": interrupt({"proposal": state["proposal"]})}


def perform_refund(state: RefundState) -> RefundState:
    """An effect that costs nothing."""
    return {"result": {"refund": state["proposal"]["args"]["order_id"]}}


def build_graph(saver: PostgresSaver) -> Any:
    builder = StateGraph(RefundState)
    builder.add_node("ask", ask_reviewer)
    builder.add_node("perform", perform_refund)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "perform")
    builder.add_edge("perform", END)
    return builder.compile(checkpointer=saver)


def run_action(
    graph: Any, proposal: dict[str, Any], run: str, numbers: Iterator[int]
) -> None:
    """Propose, decide and perform."""
    config = {"configurable": {"thread_id": f"{run}-{next(numbers)}"}}
    waiting = graph.invoke({"proposal": proposal}, config)
    if "__interrupt__" not in waiting:
        raise LookupError("the graph did not wait for a person")
    done = graph.invoke(Command(resume=DECISION), config)
    if "result" not in done:
        raise LookupError("the graph did not perform its effect")


@contextmanager
def open_client(
    options: StretchOptions, url: str, number: int
) -> Iterator[Callable[[], object]]:
    with PostgresSaver.from_conn_string(url) as saver:
        yield partial(
            run_action,
            build_graph(saver),
            options.proposal,
            uuid.uuid4().hex,
            itertools.count(),
        )


def main() -> None:
    options, url = read_options(__doc__), os.environ["PEER_DATABASE_URL"]
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    print_stretch("langgraph", partial(open_client, options, url), options)


if __name__ == "__main__":
    main()
