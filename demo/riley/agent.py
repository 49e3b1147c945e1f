"""Riley at work: takes messages, proposes, and comes back when there is an outcome.

Riley keeps nothing on disk. The process may die at any line: each proposal has an
idempotency key of thread and step and carries the case as a checkpoint, so a new
process finds every open case at the gate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from counterseal_client import (
    ApiError,
    Details,
    File,
    Gate,
    Proposal,
    ThreadResult,
    Unreachable,
    encode_blob,
)

from . import planner, questions
from .actions import Draft
from .attachments import list_attachments
from .cases import Case, Message, begin_cases

log = logging.getLogger("riley")

MAX_WAITING = 8
"""Cases that wait for people before Riley takes no new ones."""
QUICK_MESSAGES = 3
"""The first messages, which Riley takes quickly: a visitor soon sees something."""
PROMPT_S = 5.0
"""How long Riley waits for an effect that nobody decides on."""
REST_S = 30.0
"""The pause where nothing can be done, or the gate or the store does not answer."""
TEMPORARY = frozenset({"too_many", "agent_stopped", "in_progress", "conflict"})
"""Refusals that the gate may not repeat later."""
HEAD, TAIL = 14_000, 5_000
"""Characters kept of a long text: the gate takes 20,000, and lies hide at the end."""


@dataclass(slots=True)
class Open:
    """A case in work, and the proposal that it waits for, if any."""

    case: Case
    message: Message
    proposal: str = ""


class Riley:
    """All open cases, and the loop that moves them on."""

    def __init__(
        self,
        gate: Gate,
        store: httpx2.Client,
        *,
        pace_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`store` has the store's address as base. `pace_s`: seconds between two new
        messages."""
        self.gate = gate
        self.store = store
        self.pace_s = pace_s
        self.sleep = sleep
        self.open: dict[str, Open] = {}
        self.threads: set[str] = set()
        self.messages: set[str] = set()
        self.next_message = time.monotonic()
        self.asked = False

    def run(self) -> None:
        """Work until killed. Raises ApiError for a refusal that is not temporary."""
        while True:
            try:
                self.ask()
                self.work()
            except (Unreachable, httpx2.HTTPError, ApiError) as error:
                if isinstance(error, ApiError) and not is_temporary(error):
                    raise
                log.info("resting: %s", error)
                self.sleep(REST_S)

    def ask(self) -> None:
        """Ask people about returns, once a process."""
        if not self.asked:
            questions.ask_about_returns(self.gate)
            self.asked = True

    def work(self) -> None:
        """One round: take a message, move on what can move, wait for outcomes."""
        self.take_message()
        for thread in self.list_ready():
            self.advance(thread)
            self.sleep(self.pace_s / 20)
        self.await_outcomes()

    def list_ready(self) -> list[str]:
        """Threads of the cases that wait for nothing."""
        return [thread for thread, o in self.open.items() if not o.proposal]

    def get_waiting(self) -> dict[str, str]:
        """The proposals that cases wait for, by thread."""
        return {thread: o.proposal for thread, o in self.open.items() if o.proposal}

    def take_message(self) -> None:
        """Take the next message when it is time and not too many cases wait. Messages
        that an earlier process began come back at once, until a new one is found."""
        if time.monotonic() < self.next_message:
            return
        if len(self.get_waiting()) >= MAX_WAITING:
            return
        pause = REST_S
        for row in self._fetch("/inbox.json")["messages"]:
            number = row["id"]
            if number not in self.messages and self.begin(number):
                quick = len(self.messages) < QUICK_MESSAGES
                pause = self.pace_s / 6 if quick else self.pace_s
                break
        self.next_message = time.monotonic() + pause

    def begin(self, number: str) -> bool:
        """Open the cases of a message, each as its checkpoint has it; whether any is
        new."""
        message: Message = self._fetch(f"/inbox/{number}.json")
        cases = begin_cases(message, taken=self.threads)
        opened = {case.thread: self.resume(case, message) for case in cases}
        self.messages.add(number)
        self.threads.update(opened)
        self.open |= {thread: case for thread, case in opened.items() if case}
        return any(case and not case.case.steps for case in opened.values())

    def resume(self, case: Case, message: Message) -> Open | None:
        """The case as the gate's checkpoint has it, or as it begins; None when it is
        finished."""
        try:
            thread = self.gate.checkpoint(case.thread)
        except ApiError as error:
            if error.code != "not_found":
                raise
            log.info("%s: took message %s (%s)", case.thread, case.message, case.intent)
            return Open(case, message)
        if thread.status == "finished":
            return None
        if thread.checkpoint is None or not thread.checkpoint.blob:
            return Open(case, message)
        log.info("%s: resumed from its checkpoint", case.thread)
        resumed = Case.load(thread.checkpoint.blob)
        return Open(resumed, message, thread.checkpoint.proposal)

    def advance(self, thread: str) -> None:
        """One step of a case that waits for nothing. Where no person decides, Riley
        waits for the effect."""
        current = self.open[thread]
        case, draft = planner.plan_step(current.case)
        if draft is None:
            self.finish(thread, case.result)
            return
        try:
            proposal = self.gate.propose(
                thread,
                draft.tool,
                draft.args,
                idempotency_key=f"riley:{thread}:{case.steps}",
                **build_details(case, draft, current.message),
            )
        except ApiError as error:
            self._check_final(error)
            log.info("%s: not taken: %s", thread, error)
            current.case = planner.absorb_refusal(case, error.code)
            return
        # The gate answers a repeated key with the proposal as it was the first time.
        if proposal.status in ("granted", "executing"):
            proposal = self.gate.wait(proposal.id, PROMPT_S)
        current.case, current.proposal = case, proposal.id
        log.info("%s: %s is %s", thread, proposal.tool, proposal.status)
        self.absorb(thread, proposal)

    def await_outcomes(self) -> None:
        """Wait for one proposal, then look up which others have news."""
        waiting = self.get_waiting()
        span = 0.0 if self.list_ready() else min(5.0, self.pace_s / 6)
        if not waiting:
            self.sleep(span)
            return
        self.gate.wait(next(iter(waiting.values())), span)
        pending = {
            proposal.id: proposal for proposal in self.gate.list(status="pending")
        }
        for thread, number in waiting.items():
            if number in pending:
                self.respond(thread, pending[number])
            else:
                self.absorb(thread, self.gate.get(number))

    def respond(self, thread: str, proposal: Proposal) -> None:
        """Answer what people asked, and withdraw what they sent back: Riley follows
        fixed rules and cannot act on guidance."""
        text = planner.build_answer(self.open[thread].case)
        try:
            for question in proposal.questions:
                key = f"riley:{proposal.id}:{question.round}"
                self.gate.answer(
                    proposal.id, text, round=question.round, idempotency_key=key
                )
                log.info("%s: answered question %s", thread, question.round)
            if proposal.returned:
                self.absorb(thread, self.gate.withdraw(proposal.id))
        except ApiError as error:
            self._check_final(error)
            log.info("%s: no response taken: %s", thread, error)

    def absorb(self, thread: str, proposal: Proposal) -> None:
        """Move the case on if its proposal has an outcome."""
        if not proposal.final:
            return
        current = self.open[thread]
        current.case = planner.absorb_outcome(current.case, proposal)
        current.proposal = ""
        log.info("%s: %s ended %s", thread, proposal.tool, proposal.status)

    def finish(self, thread: str, result: ThreadResult) -> None:
        """End the run at the gate."""
        try:
            self.gate.finish(thread, result)
        except ApiError as error:
            # 404: the gate took no proposal of the run. 409: it has ended already.
            if error.status not in (404, 409):
                raise
        del self.open[thread]
        log.info("%s: %s", thread, result)

    def _check_final(self, error: ApiError) -> None:
        """Raise a refusal that concerns more than this case or may not be repeated."""
        if error.code == "agent_stopped" and self.gate.whoami().state != "stopped":
            return  # a person stopped only this run or this tool
        if error.status == httpx2.codes.UNAUTHORIZED or is_temporary(error):
            raise error

    def _fetch(self, path: str) -> Any:
        return self.store.get(path, timeout=10.0).raise_for_status().json()


def is_temporary(error: ApiError) -> bool:
    """Whether the gate may answer the same call differently later."""
    return error.code in TEMPORARY or error.status >= 500


def build_details(case: Case, draft: Draft, message: Message) -> Details:
    """Everything that a proposal says beside the action. `case` is the case that then
    waits."""
    details: Details = {
        "rationale": draft.rationale,
        "expected_outcome": draft.expected_outcome,
        "reversal": draft.reversal,
        "alternatives": draft.alternatives,
        "evidence": list(_list_evidence(case, draft, message)),
        "checkpoint": {
            "summary": f"Works on a message of intent {case.intent}; waits for"
            f" {case.action}.",
            "state": {
                "goal": f"Settle a message of intent {case.intent}.",
                "plan": _build_plan(case),
                "budget": {"proposals": f"{case.steps} of at most {planner.MAX_STEPS}"},
                "notes": list(case.notes),
            },
            "blob": encode_blob(case.dump()),
            "resume_at": case.action,
        },
        "source": "support inbox",
        "group": f"message {case.message}",
    }
    customer = case.known.get("customer_id") or case.order.get("customer_id")
    if customer:
        details["on_behalf_of"] = {"kind": "customer", "id": str(customer)}
    return details


def _build_plan(case: Case) -> list[dict[str, str]]:
    """The actions of the case: those done, the one that waits, and those ahead."""
    done = [{"step": action, "state": "done"} for action in case.known.get("did", {})]
    ahead = [
        {"step": action, "state": "next" if number else "waiting"}
        for number, action in enumerate(case.agenda)
    ]
    return [*done, *ahead]


def _list_evidence(
    case: Case, draft: Draft, message: Message
) -> Iterator[dict[str, Any] | File]:
    """The message, the order as the store has it to compare the message with, and what
    shows the damage."""
    head = f"From: {message['name']} <{message['from']}>\nSubject: {message['subject']}"
    yield {
        "kind": "message",
        "source": f"inbox {message['id']}",
        "at": message["received_at"],
        "text": shorten(f"{head}\n\n{message['body']}"),
    }
    if order := case.order:
        text = (
            f"Order {order['order_id']}: {order['status']}, total {order['total']}"
            f" {order['currency']}, refunded {order['refunded']}."
        )
        if order.get("carrier_status"):
            text += f" {order['carrier']} says: {order['carrier_status']}."
        yield {"kind": "order record", "source": "the store", "text": text}
        if "foot is missing" in message["body"] and draft.tool == "process_refund":
            yield from list_attachments(order)


def shorten(text: str) -> str:
    """At most what the gate takes: both ends and a count of what is left out."""
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return text
    return f"{text[:HEAD]}\n[{left_out} characters left out]\n{text[-TAIL:]}"
