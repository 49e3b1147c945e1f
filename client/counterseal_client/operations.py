"""Every operation of the API, once, as flows (see `calls`). `Gate` and `AsyncGate` have
a method for each."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from .calls import LONGEST_HOLD, Connection, Flow, Pause, choose_key, quote_path
from .files import File, send_files
from .models import (
    Claim,
    Identity,
    Message,
    Object,
    Proposal,
    ProposalPage,
    ThreadState,
    ToolDeclaration,
    parse_answer,
)

if TYPE_CHECKING:
    from .grants import VerifiedGrant

QUICK = 0.5
"""Seconds. Counterseal did not hold a call that returned sooner without news, so `wait`
pauses for as long instead of calling in a tight loop."""

LEASE_HOLD = 5.0
"""Seconds. Nothing wakes a held call when a lease ends, after which a dead attempt may
be repeated, so `wait` looks again while an effect is under way."""

OutcomeStatus = Literal["succeeded", "failed", "unknown"]
ThreadResult = Literal["completed", "gave_up", "failed"]


class CheckpointIn(TypedDict, total=False):
    """The state to resume from: `summary` is shown to people after redaction, `state`
    is structured, `blob` is base64 of any bytes and stored encrypted (see
    `encode_blob`), `resume_at` names the step to resume at."""

    summary: str
    state: Mapping[str, Any]
    blob: str
    resume_at: str


class ToolDescription(TypedDict, total=False):
    """What the agent says of a tool: `text`, and the JSON Schema of its arguments. It
    counts only while the policy does not declare the tool."""

    text: str
    schema: Mapping[str, Any]


class Details(TypedDict, total=False):
    """The optional fields of a proposal. `evidence` has items of `kind`, `source` and
    `text`, and Files, which are sent first. `again`: one more effect is meant, where
    the same action of the run is still open; without it, the call joins that one."""

    rationale: str
    expected_outcome: str
    reversal: str
    alternatives: Sequence[Mapping[str, str]]
    uncertain: bool | float
    evidence: Sequence[Mapping[str, Any] | File]
    checkpoint: CheckpointIn
    on_behalf_of: Mapping[str, Any]
    parent: str
    supersedes: str
    source: str
    group: str
    priority: str
    again: bool
    preconditions: Mapping[str, Any]
    expires_in: int
    callback_url: str
    tool_description: ToolDescription


def encode_blob(blob: bytes) -> str:
    """Encode bytes for a checkpoint's `blob`."""
    return b64encode(blob).decode("ascii")


class Operations:
    """The operations of one agent at one gate.

    After the retries of the connection's `backoff`, each raises ApiError when
    Counterseal refuses the call, Unreachable when Counterseal does not respond, and
    InvalidAnswer when the response is not the one that the API promises.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._keys: Object | None = None  # Counterseal's public keys, once fetched

    def propose(
        self,
        thread: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        idempotency_key: str = "",
        wait: float = 0,
        **details: Unpack[Details],
    ) -> Flow[Proposal]:
        """Propose one action.

        Pass a key that you can build again after a crash: the same key and body always
        return the same proposal. With `wait` the call returns as soon as the proposal
        is final, at the latest after that many seconds.
        """
        sent = yield from send_files(self.connection, details)
        body = {"thread": thread, "tool": tool, "args": args, **sent}
        path = "/proposals"
        answer = yield from self.post(path, body, key=idempotency_key, hold=wait)
        return parse_answer(Proposal, answer)

    def revise(
        self,
        proposal: str,
        args: Mapping[str, Any],
        *,
        idempotency_key: str = "",
        **details: Unpack[Details],
    ) -> Flow[Proposal]:
        """Revise a proposal. The votes given so far no longer count."""
        path = quote_path("proposals", proposal, "revisions")
        body = {"args": args, **(yield from send_files(self.connection, details))}
        answer = yield from self.post(path, body, key=idempotency_key)
        return parse_answer(Proposal, answer)

    def get(self, proposal: str) -> Flow[Proposal]:
        """Return the current proposal."""
        return (yield from self._look_up(proposal, 0))

    def wait(self, proposal: str, timeout: float | None = 300.0) -> Flow[Proposal]:
        """Wait for a final status, a grant to redeem, or a new message.

        Returns the current proposal after `timeout` seconds at the latest; check
        `final`. None waits until the request ends, which it does at its deadline.
        Waiting occupies no worker of Counterseal, so you can wait for long, and again
        later or from another process.
        """
        end = float("inf") if timeout is None else time.monotonic() + timeout
        first = now = yield from self._look_up(proposal, 0)
        while not is_news(now, first):
            left = end - time.monotonic()
            if left <= 0:
                break
            asked = time.monotonic()
            longest = LEASE_HOLD if now.status == "executing" else LONGEST_HOLD
            now = yield from self._look_up(proposal, min(left, longest))
            if time.monotonic() - asked < QUICK and not is_news(now, first):
                yield Pause(min(left, QUICK))
        return now

    def list_page(
        self, *, status: str = "", thread: str = "", cursor: str = ""
    ) -> Flow[ProposalPage]:
        """One page of this agent's proposals, newest first."""
        query = {"status": status, "thread": thread, "cursor": cursor}
        call = self.connection.build_call("GET", "/proposals", query=query)
        answer = yield from self.connection.send_call(call)
        return parse_answer(ProposalPage, answer)

    def withdraw(self, proposal: str) -> Flow[Proposal]:
        """Withdraw the proposal. Its open request is closed, and an unused grant is
        revoked."""
        path = quote_path("proposals", proposal, "withdraw")
        return parse_answer(Proposal, (yield from self.post(path, {})))

    def messages(self, proposal: str) -> Flow[tuple[Message, ...]]:
        """Return what reviewers and the agent wrote about a proposal, oldest first."""
        return (yield from self._look_up(proposal, 0)).messages

    def answer(
        self,
        proposal: str,
        text: str,
        *,
        round: int | None = None,
        idempotency_key: str = "",
    ) -> Flow[Proposal]:
        """Answer a question of a reviewer. `round` is that of the question; it may be
        left out when only one is unanswered. ApiError `no_question` means that nobody
        waits for an answer."""
        body = {"kind": "answer", "text": text, "round": round}
        return (yield from self._send_message(proposal, body, idempotency_key))

    def ask_reviewers(
        self, proposal: str, text: str, *, idempotency_key: str = ""
    ) -> Flow[Proposal]:
        """Ask the reviewers of a proposal a question about it. ApiError `rounds` means
        that the agent may ask no further question about this proposal."""
        body = {"kind": "question", "text": text}
        return (yield from self._send_message(proposal, body, idempotency_key))

    def _send_message(
        self, proposal: str, body: Mapping[str, Any], key: str
    ) -> Flow[Proposal]:
        path = quote_path("proposals", proposal, "messages")
        return parse_answer(Proposal, (yield from self.post(path, body, key=key)))

    def redeem(self, token: str, *, idempotency_key: str = "") -> Flow[Claim]:
        """Redeem the one-use grant before you perform the effect yourself.

        Until the lease ends, the same key returns the same claim; any other call fails
        with `grant_spent`. Pass a key of your own only if you store that you begin
        before you begin: after a crash, the same key cannot tell whether you had begun.
        """
        path = "/grants/redeem"
        answer = yield from self.post(path, {"token": token}, key=idempotency_key)
        return parse_answer(Claim, answer)

    def report(
        self,
        claim: Claim,
        status: OutcomeStatus,
        *,
        result: Mapping[str, Any] | None = None,
        code: str = "",
        detail: str = "",
    ) -> Flow[Proposal]:
        """Report the outcome of a redeemed effect: `succeeded` with its result,
        `failed` (nothing happened, for certain) or `unknown` with a code and a
        detail."""
        body: dict[str, Any] = {
            "fence": claim.fence,
            "status": status,
            "result": result,
            "action_hash": claim.action_hash,
        }
        if status != "succeeded":
            body |= {"code": code[:64], "detail": detail[:2000]}
        path = quote_path("executions", claim.execution, "outcome")
        call = self.connection.build_call("POST", path, body)
        return parse_answer(Proposal, (yield from self.connection.send_call(call)))

    def checkpoint(self, thread: str) -> Flow[ThreadState]:
        """Return the thread's latest checkpoint and the outcome to resume with."""
        path = quote_path("threads", thread, "checkpoint")
        return parse_answer(ThreadState, (yield from self._read(path)))

    def resume(self, thread: str, timeout: float | None = 300.0) -> Flow[ThreadState]:
        """Return the same, and wait for the outcome if there is none yet. Call it each
        time the agent starts again. Check `due`: after `timeout` seconds, or when a
        person returned the proposal, there may still be none."""
        state = yield from self.checkpoint(thread)
        if state.outcome is None or state.outcome.outcome:
            return state
        now = yield from self.wait(state.outcome.id, timeout)
        changes = {"outcome": now, "acknowledged": now.acknowledged_at is not None}
        return state.model_copy(update=changes)

    def acknowledge(self, proposal: Proposal) -> Flow[Proposal]:
        """Acknowledge this outcome, so that it is not offered again.

        Acknowledge after you have stored your work together with `proposal.outcome`.
        After a crash in between, the outcome is offered again, and you find it stored.
        Raises ValueError for a proposal that has no outcome yet.
        """
        if not proposal.outcome:
            raise ValueError(f"{proposal.id} has no outcome to acknowledge yet")
        path = quote_path("proposals", proposal.id, "acknowledge")
        answer = yield from self.post(path, {"outcome": proposal.outcome})
        return parse_answer(Proposal, answer)

    def finish(self, thread: str, result: ThreadResult) -> Flow[None]:
        """End the run. What is still open is withdrawn."""
        path = quote_path("threads", thread, "finish")
        yield from self.post(path, {"result": result})

    def tools(self) -> Flow[tuple[ToolDeclaration, ...]]:
        """Return the tools that this agent may propose, as the policy declares them."""
        rows = yield from self._read("/tools")
        return tuple(parse_answer(ToolDeclaration, row) for row in rows)

    def whoami(self) -> Flow[Identity]:
        """Return the agent that the key belongs to."""
        return parse_answer(Identity, (yield from self._read("/whoami")))

    def verify_grant(self, claim: Claim, audience: str) -> Flow[VerifiedGrant]:
        """Verify that the claim's grant has Counterseal's signature and permits exactly
        these arguments. `audience` is the tool's in the policy, `tool:` and its name if
        the policy gives none.

        Fetches Counterseal's public keys once, and again for a key that it does not
        know. Raises InvalidGrant. Needs `pip install "counterseal-client[grants]"`.
        """
        from .grants import InvalidGrant, verify

        again = self._keys is not None
        if self._keys is None:
            self._keys = yield from self._fetch_keys()
        given: dict[str, Any] = {
            "audience": audience,
            "tool": claim.tool,
            "args": claim.args,
            "preconditions": claim.preconditions,
        }
        try:
            return verify(claim.grant, self._keys, **given)
        except InvalidGrant as error:
            if error.code != "unknown_key" or not again:
                raise
        self._keys = yield from self._fetch_keys()
        return verify(claim.grant, self._keys, **given)

    def _fetch_keys(self) -> Flow[Object]:
        call = self.connection.build_public_call("/.well-known/jwks.json")
        keys: Object = yield from self.connection.send_call(call)
        return keys

    def _look_up(self, proposal: str, hold: float) -> Flow[Proposal]:
        path = quote_path("proposals", proposal)
        call = self.connection.build_call("GET", path, hold=hold)
        return parse_answer(Proposal, (yield from self.connection.send_call(call)))

    def _read(self, path: str) -> Flow[Any]:
        call = self.connection.build_call("GET", path)
        return (yield from self.connection.send_call(call))

    def post(
        self, path: str, body: Mapping[str, Any], *, key: str = "", hold: float = 0
    ) -> Flow[Any]:
        """Send a body under a key, a fresh one if none is given."""
        call = self.connection.build_call(
            "POST", path, body, idempotency_key=choose_key(key), hold=hold
        )
        return (yield from self.connection.send_call(call))


def is_news(now: Proposal, first: Proposal) -> bool:
    """Whether there is something for the agent to act on since it first looked."""
    said = len(now.received) > len(first.received)
    returned = now.returned and not first.returned
    return now.final or now.grant is not None or returned or said
