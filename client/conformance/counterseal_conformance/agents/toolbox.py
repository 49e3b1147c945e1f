"""The tools of the agents of all frameworks, bare and behind the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, cast

import httpx2

from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.tools import get_claim

from ..scripting import WORDS, ToolBox, build_turn
from ..worker import Job, kill_this_process, meet_at_effect

Params = ParamSpec("Params")

DELEGATE = [build_turn(("outer_1", "delegate", {"task": "send it"}))]
"""The script of an agent that has a nested one."""


def build_toolbox(job: Job) -> ToolBox:
    """The functions of the tools. Behind the gate each call has its key; a framework
    alone hands none to a tool."""
    return ToolBox(
        job.ledger,
        find_key=lambda: get_claim().idempotency_key if job.gated else "",
        before_effect=partial(meet_at_effect, Path(job.folder))
        if job.rendezvous
        else bool,
        after_effect=kill_this_process if job.kill_after_effect else bool,
    )


class GatedBox:
    """The functions behind the gate."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.gate = Gate(job.url, job.key, http=httpx2.Client(trust_env=False))
        self.tools: Mapping[str, GatedTool[..., Any]] = {
            name: self.gate.tool()(function)
            for name, function in build_toolbox(job).functions.items()
        }

    def add_details(self, details: Details) -> Details:
        """The details of a proposal with those of the job, and a mark that this code
        ran."""
        self._job.ledger.mark("described")
        return {**details, **cast("Details", self._job.details)}

    def describe(self, *_: object) -> Details:
        """The details of any proposal, for an adapter that finds none by itself."""
        return self.add_details({"rationale": WORDS})

    def extend(self, describe: Callable[Params, Details]) -> Callable[Params, Details]:
        """An adapter's own function for details, with `add_details`."""
        return lambda *args, **more: self.add_details(describe(*args, **more))
