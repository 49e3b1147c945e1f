"""The calls that an agent may make, one method each."""

from __future__ import annotations

import math
import time
import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack
from urllib.parse import quote

import httpx2

from .models import Proposal, Redeemed, Resume
from .transport import Backoff, Transport

LONGEST_WAIT = 60.0
"""The most seconds for which Holdpoint holds one call; `wait` then calls again."""

QUICK = 0.5
"""Seconds. Holdpoint did not hold a call that returned sooner without news, so `wait`
pauses for as long instead of calling in a tight loop."""


class CheckpointIn(TypedDict, total=False):
    """The state to resume from: `summary` is shown to people after redaction, `state`
    is structured, `blob` is base64 of any bytes and stored encrypted (see `pack`),
    `resume_at` names the step to resume at."""

    summary: str
    state: Mapping[str, Any]
    blob: str
    resume_at: str


class Details(TypedDict, total=False):
    """The optional fields of a proposal."""

    rationale: str
    expected_outcome: str
    reversal: str
    alternatives: Sequence[Mapping[str, str]]
    uncertain: bool | float
    evidence: Sequence[Mapping[str, Any]]
    checkpoint: CheckpointIn
    on_behalf_of: Mapping[str, Any]
    parent: str
    supersedes: str
    source: str
    group: str
    priority: str
    preconditions: Mapping[str, Any]
    expires_in: int
    callback_url: str


def pack(blob: bytes) -> str:
    """Encode bytes for a checkpoint's `blob`."""
    return b64encode(blob).decode("ascii")


class Client:
    """One agent's connection to Holdpoint. Not thread-safe.

    After the retries of `backoff`, every call raises ApiError when Holdpoint refuses it
    and Unreachable when Holdpoint does not respond.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        backoff: Backoff | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        """`http` replaces the connection pool, for proxies or a private CA."""
        backoff = backoff or Backoff()
        self._sleep = backoff.sleep
        self._http = http or httpx2.Client(follow_redirects=False)
        self._call = Transport(self._http, base_url, key, backoff=backoff).call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def propose(
        self,
        thread: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        idempotency_key: str = "",
        wait: float = 0,
        **details: Unpack[Details],
    ) -> Proposal:
        """Propose one action.

        Pass a key that you can build again after a crash: the same key and body always
        return the same proposal. With `wait` the call returns as soon as the proposal
        is final, at the latest after that many seconds.
        """
        body = {"thread": thread, "tool": tool, "args": args, **details}
        return self._keyed("/proposals", body, key=idempotency_key, wait=wait)

    def revise(
        self,
        proposal: str,
        args: Mapping[str, Any],
        *,
        idempotency_key: str = "",
        **details: Unpack[Details],
    ) -> Proposal:
        """Revise a proposal. The votes given so far no longer count."""
        path = f"/proposals/{quote(proposal, safe='')}/revisions"
        return self._keyed(path, {"args": args, **details}, key=idempotency_key)

    def get(self, proposal: str) -> Proposal:
        """Return the current proposal."""
        return self._look(proposal, 0)

    def wait(self, proposal: str, timeout: float = 300.0) -> Proposal:
        """Wait for a final status, a grant to redeem, or a new message.

        Returns the current proposal after `timeout` seconds at the latest; check
        `final`. Waiting occupies no worker of Holdpoint, so you can wait for long, and
        again later or from another process.
        """
        end = time.monotonic() + timeout
        first = now = self._look(proposal, 0)
        while not _news(now, first):
            left = end - time.monotonic()
            if left <= 0:
                break
            asked = time.monotonic()
            now = self._look(proposal, min(left, LONGEST_WAIT))
            if time.monotonic() - asked < QUICK and not _news(now, first):
                self._sleep(min(left, QUICK))
        return now

    def list(self, *, status: str = "", thread: str = "") -> Iterator[Proposal]:
        """List this agent's proposals, newest first, page by page."""
        chosen = {"status": status, "thread": thread, "cursor": ""}
        while True:
            params = {name: value for name, value in chosen.items() if value}
            page = self._call("GET", "/proposals", params=params)
            yield from map(Proposal.parse, page["items"])
            chosen["cursor"] = page.get("next_cursor") or ""
            if not chosen["cursor"]:
                return

    def withdraw(self, proposal: str) -> Proposal:
        """Withdraw the proposal."""
        path = f"/proposals/{quote(proposal, safe='')}/withdraw"
        return Proposal.parse(self._call("POST", path, {}))

    def redeem(self, token: str, *, idempotency_key: str = "") -> Redeemed:
        """Redeem the one-use grant before you perform the effect yourself.

        Until the lease ends, the same key returns the same claim; any other call fails
        with `grant_spent`. Pass a key of your own only if you store that you begin
        before you begin: after a crash, the same key cannot tell whether you had begun.
        """
        answer = self._call(
            "POST",
            "/grants/redeem",
            {"token": token},
            headers=_key(idempotency_key),
        )
        return Redeemed.parse(answer)

    def outcome(
        self,
        redeemed: Redeemed,
        status: str,
        *,
        result: Mapping[str, Any] | None = None,
        action_hash: str = "",
    ) -> Proposal:
        """Report the outcome of a redeemed effect: `succeeded`, `failed` (nothing
        happened, for certain) or `unknown`."""
        body = {
            "fence": redeemed.fence,
            "status": status,
            "result": result,
            "action_hash": action_hash or redeemed.action_hash,
        }
        path = f"/executions/{quote(redeemed.execution, safe='')}/outcome"
        return Proposal.parse(self._call("POST", path, body))

    def checkpoint(self, thread: str) -> Resume:
        """Return the thread's latest checkpoint and the outcome to resume with."""
        path = f"/threads/{quote(thread, safe='')}/checkpoint"
        return Resume.parse(self._call("GET", path))

    def resume(self, thread: str, timeout: float = 300.0) -> Resume:
        """Return the same, and wait for the outcome if there is none yet. Call it each
        time the agent starts again. Check `due`: after `timeout` seconds, or when a
        person returned the proposal, there may still be none."""
        found = self.checkpoint(thread)
        if found.outcome is None or found.outcome.outcome:
            return found
        now = self.wait(found.outcome.id, timeout)
        return replace(found, outcome=now, acknowledged=now.acknowledged)

    def acknowledge(self, proposal: Proposal) -> Proposal:
        """Acknowledge this outcome, so that it is not offered again.

        Acknowledge after you have stored your work together with `proposal.outcome`.
        After a crash in between, the outcome is offered again, and you find it stored.
        Raises ValueError for a proposal that has no outcome yet.
        """
        if not proposal.outcome:
            raise ValueError(f"{proposal.id} has no outcome to acknowledge yet")
        path = f"/proposals/{quote(proposal.id, safe='')}/acknowledge"
        return Proposal.parse(self._call("POST", path, {"outcome": proposal.outcome}))

    def finish(self, thread: str, result: str) -> None:
        """End the run as `completed`, `gave_up` or `failed`. What is still open is
        withdrawn."""
        path = f"/threads/{quote(thread, safe='')}/finish"
        self._call("POST", path, {"result": result})

    def tools(self) -> Any:
        """What this agent may propose."""
        return self._call("GET", "/tools")

    def whoami(self) -> Any:
        """Who this key is."""
        return self._call("GET", "/whoami")

    def _keyed(
        self, path: str, body: Mapping[str, Any], *, key: str, wait: float = 0
    ) -> Proposal:
        answer = self._call(
            "POST",
            path,
            body,
            headers=_key(key),
            params=_wait(wait),
            patience=wait,
        )
        return Proposal.parse(answer)

    def _look(self, proposal: str, wait: float) -> Proposal:
        path = f"/proposals/{quote(proposal, safe='')}"
        answer = self._call("GET", path, params=_wait(wait), patience=wait)
        return Proposal.parse(answer)


def _news(now: Proposal, first: Proposal) -> bool:
    """Whether there is something for the agent to act on."""
    said = len(now.messages) > len(first.messages)
    returned = now.returned and not first.returned
    return now.final or now.grant is not None or returned or said


def _key(given: str) -> dict[str, str]:
    """The header of one call, the same however often the call is sent."""
    return {"Idempotency-Key": given or str(uuid.uuid4())}


def _wait(seconds: float) -> dict[str, str]:
    """The query of a held call; whole seconds, and none for no wait."""
    whole = math.ceil(min(seconds, LONGEST_WAIT))
    return {"wait": str(whole)} if whole > 0 else {}
