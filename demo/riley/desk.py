"""Riley at work: takes messages, proposes, and comes back when there is an outcome.

Nothing is held while a case waits, and the process may be killed at any line: each
proposal has a key made of thread and step, and carries the case as a checkpoint.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx2

from holdpoint_client import ApiError, Client, Proposal, Unreachable

from . import letters, planner, reading
from .case import Case, Message
from .inbox import Inbox
from .notebook import Notebook
from .pace import MOST_WAITING, Pace

log = logging.getLogger("riley")

LATER = frozenset({"too_many", "agent_stopped", "in_progress", "conflict"})
"""Refusals that another hour may answer otherwise."""


@dataclass(slots=True)
class Open:
    """A case in work, and the proposal it waits for, if it does."""

    case: Case
    message: Message
    proposal: str = ""


class Desk:
    """All of Riley's open cases, and the loop that moves them on."""

    def __init__(
        self,
        gate: Client,
        inbox: Inbox,
        notebook: Notebook,
        pace: Pace,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.gate = gate
        self.inbox = inbox
        self.notebook = notebook
        self.pace = pace
        self.sleep = sleep
        self.open: dict[str, Open] = {}
        self.next_case = time.monotonic()

    def run(self) -> None:
        """Work until killed. Raises ApiError for a refusal that time will not cure."""
        while True:
            try:
                self.tick()
            except (Unreachable, httpx2.HTTPError, ApiError) as error:
                if isinstance(error, ApiError) and not passing(error):
                    raise
                log.info("resting for %.0f s: %s", self.pace.rest, error)
                self.sleep(self.pace.rest)

    def tick(self) -> None:
        """One round: pick up, take on, step, listen."""
        self.pick_up()
        self.take_next()
        for thread in self.ready():
            self.advance(thread)
            self.sleep(self.pace.step)
        self.listen()

    def ready(self) -> list[str]:
        """Threads of the cases that wait for nothing."""
        return [thread for thread, o in self.open.items() if not o.proposal]

    def waiting(self) -> dict[str, str]:
        """Proposals that are waited for, by thread."""
        return {thread: o.proposal for thread, o in self.open.items() if o.proposal}

    def pick_up(self) -> None:
        """Resume what the notebook has open and this process does not."""
        for thread, number in self.notebook.open.items():
            if thread not in self.open:
                self.open[thread] = self.resume(thread, self.inbox.read(number))

    def resume(self, thread: str, message: Message) -> Open:
        """The case as the gate's checkpoint has it, or anew where it has none."""
        try:
            kept = self.gate.checkpoint(thread).checkpoint
        except ApiError as error:
            if error.code != "not_found":
                raise
            kept = None
        if kept is None or not kept.blob:
            cases = {case.thread: case for case in reading.begin_all(message)}
            anew = cases.get(thread) or reading.begin(message)
            return Open(replace(anew, thread=thread), message)
        log.info("%s: resumed from its checkpoint", thread)
        return Open(Case.load(kept.blob), message, kept.proposal)

    def take_next(self) -> None:
        """Begin the next message when it is time and not too many wait."""
        if time.monotonic() < self.next_case or len(self.waiting()) >= MOST_WAITING:
            return
        seen = self.notebook.seen()
        number = next((n for n in self.inbox.listed() if n not in seen), None)
        if number is not None:
            self.take(self.inbox.read(number))
        pause = self.pace.gap(len(seen) + 1) if number else self.pace.rest
        self.next_case = time.monotonic() + pause

    def take(self, message: Message) -> None:
        """Begin one message, with as many cases as it asks for."""
        for case in reading.begin_all(message, taken=self.notebook.threads()):
            self.notebook.take(case.thread, message.id)
            self.open[case.thread] = Open(case, message)
            log.info("%s: took message %s (%s)", case.thread, message.id, case.intent)

    def advance(self, thread: str) -> None:
        """One step of a case that waits for nothing."""
        current = self.open[thread]
        step = planner.plan(current.case)
        if isinstance(step, planner.Finish):
            self.finish(thread, step.result)
            return
        try:
            proposal = self.propose(step, current.message)
        except ApiError as error:
            current.case = self.turned_away(step.case, error)
            return
        current.case, current.proposal = step.case, proposal.id
        log.info("%s: %s is %s", thread, proposal.tool, proposal.status)
        self.hear(thread, proposal)

    def propose(self, step: planner.Propose, message: Message) -> Proposal:
        """The proposal, as far as it gets in the time that an effect takes.

        A repeated key is answered as it was the first time, so what is under way is
        asked for once more.
        """
        case, draft = step.case, step.draft
        proposal = self.gate.propose(
            case.thread,
            draft.tool,
            draft.args,
            idempotency_key=f"riley:{case.thread}:{case.steps}",
            **letters.details(case, draft, message),
        )
        if proposal.status in ("granted", "executing"):
            return self.gate.wait(proposal.id, self.pace.prompt)
        return proposal

    def listen(self) -> None:
        """Hear about the cases that wait: one call is held, the rest is looked up."""
        waiting, span = self.waiting(), self._span()
        if not waiting:
            self.sleep(span)
            return
        self.gate.wait(next(iter(waiting.values())), span)
        pending = {proposal.id for proposal in self.gate.list(status="pending")}
        for thread, number in waiting.items():
            if number not in pending:
                self.hear(thread, self.gate.get(number))

    def hear(self, thread: str, proposal: Proposal) -> None:
        """Take in an outcome, if there is one yet."""
        if not proposal.final:
            return
        current = self.open[thread]
        answer = letters.answer(proposal, planner.proposed(current.case))
        current.case, current.proposal = planner.absorb(current.case, answer), ""
        log.info("%s: %s ended %s", thread, proposal.tool, proposal.status)

    def finish(self, thread: str, result: str) -> None:
        """End the run at the gate, then in the notebook."""
        try:
            self.gate.finish(thread, result)
        except ApiError as error:
            # Ended before, by a process that died just here; or never begun.
            if error.status not in (404, 409):
                raise
        del self.open[thread]
        self.notebook.close(thread, result)
        log.info("%s: %s", thread, result)

    def turned_away(self, case: Case, error: ApiError) -> Case:
        """The case after the gate did not take its proposal.

        Raises the error where time may help, or the key is no good.
        """
        only_here = error.code == "agent_stopped" and not self._stopped()
        if error.status == 401 or (passing(error) and not only_here):
            raise error
        log.info("%s: not taken: %s", case.thread, error)
        return planner.turned_away(case, error.code)

    def _span(self) -> float:
        """Seconds to listen: none while there is something to do."""
        if self.ready():
            return 0.0
        due = self.next_case - time.monotonic()
        return max(0.0, min(self.pace.listen, due if due > 0 else self.pace.listen))

    def _stopped(self) -> bool:
        """Whether Riley itself is stopped, and not only a thread or a tool."""
        return bool(self.gate.whoami().get("state") == "stopped")


def passing(error: ApiError) -> bool:
    """Whether the same call may be answered otherwise later."""
    return error.code in LATER or error.status >= 500
