"""DBOS: a workflow that receives the decision, and a step that performs the effect.

One action starts a workflow, sends it the decision and waits for its result, all in one
process, as its documentation has it for a person's approval.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dbos import DBOS, SetWorkflowID

from .stretch import StretchOptions, print_stretch, read_options

TOPIC = "decision"
DECISION = {"verdict": "approve", "reviewer": "rita"}


@DBOS.workflow()
def approve_refund(proposal: dict[str, Any]) -> dict[str, Any]:
    decision = DBOS.recv(TOPIC, timeout_seconds=60)
    if decision != DECISION:
        raise LookupError("the decision did not arrive")
    result: dict[str, Any] = perform_refund(proposal)
    return result


@DBOS.step()
def perform_refund(proposal: dict[str, Any]) -> dict[str, Any]:
    """An effect that costs nothing."""
    return {"refund": proposal["args"]["order_id"]}


def run_action(proposal: dict[str, Any]) -> None:
    """Propose, decide and perform."""
    name = uuid.uuid4().hex
    with SetWorkflowID(name):
        handle = DBOS.start_workflow(approve_refund, proposal)
    DBOS.send(name, DECISION, TOPIC)
    handle.get_result()


@contextmanager
def open_client(options: StretchOptions, number: int) -> Iterator[Callable[[], object]]:
    yield partial(run_action, options.proposal)


def main() -> None:
    options = read_options(__doc__)
    DBOS(
        config={
            "name": "bench",
            "system_database_url": os.environ["PEER_DATABASE_URL"],
            "log_level": "WARNING",
        }
    )
    DBOS.launch()
    try:
        print_stretch("dbos", partial(open_client, options), options)
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    main()
