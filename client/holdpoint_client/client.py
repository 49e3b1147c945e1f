"""The calls an agent may make, one method each, as api.md names them."""

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
"""Seconds the gate holds one call at most; `wait` asks again after that."""

QUICK = 0.5
"""Seconds: an answer without news that came sooner was not held, so `wait` pauses
for as long rather than ask in a tight loop."""


class CheckpointIn(TypedDict, total=False):
    """The state to come back to: `summary` is shown to people after redaction,
    `state` is structured, `blob` is base64 of whatever the agent needs, kept
    encrypted (see `pack`), `resume_at` names the step to carry on with."""

    summary: str
    state: Mapping[str, Any]
    blob: str
    resume_at: str


class Details(TypedDict, total=False):
    """Everything a proposal may say beside thread, tool and arguments."""

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
    """Bytes in the form that a checkpoint carries them."""
    return b64encode(blob).decode("ascii")


class Client:
    """One agent's connection to the gate. Not for use by two threads at once.

    Every call raises ApiError when the gate refuses and Unreachable when it cannot
    be reached; both only after the retries of `backoff`.
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
        """Give the connections back."""
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

        Give a key of your own that you can name again after a crash: the same key
        and body always lead to the same proposal. With `wait` the answer comes as
        soon as the proposal is final, or after that many seconds.
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
        """Replace what is proposed. The votes given so far are void."""
        path = f"/proposals/{quote(proposal, safe='')}/revisions"
        return self._keyed(path, {"args": args, **details}, key=idempotency_key)

    def get(self, proposal: str) -> Proposal:
        """The proposal as it stands."""
        return self._look(proposal, 0)

    def wait(self, proposal: str, timeout: float = 300.0) -> Proposal:
        """Wait for a final status, a grant to redeem, or a new message.

        Returns the proposal as it stands after `timeout` seconds at the latest;
        look at `final`. The gate holds no worker while you wait, so long waits are
        fine, and so is waiting again later or from another process.
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
        """This agent's own proposals, newest first, page by page."""
        chosen = {"status": status, "thread": thread, "cursor": ""}
        while True:
            params = {name: value for name, value in chosen.items() if value}
            page = self._call("GET", "/proposals", params=params)
            yield from map(Proposal.parse, page["items"])
            chosen["cursor"] = page.get("next_cursor") or ""
            if not chosen["cursor"]:
                return

    def withdraw(self, proposal: str) -> Proposal:
        """Take the proposal back."""
        path = f"/proposals/{quote(proposal, safe='')}/withdraw"
        return Proposal.parse(self._call("POST", path, {}))

    def redeem(self, token: str, *, idempotency_key: str = "") -> Redeemed:
        """Take the one-use grant before performing the effect yourself.

        Until its lease is over the same key gets the same claim again, and any other
        call `grant_spent`. Give a key of your own only if you note that you begin
        before you do: whoever names it after a crash may have begun already.
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
        """Report what became of a redeemed effect: `succeeded`, `failed` (certain
        that nothing happened) or `unknown`."""
        body = {
            "fence": redeemed.fence,
            "status": status,
            "result": result,
            "action_hash": action_hash or redeemed.action_hash,
        }
        path = f"/executions/{quote(redeemed.execution, safe='')}/outcome"
        return Proposal.parse(self._call("POST", path, body))

    def checkpoint(self, thread: str) -> Resume:
        """The thread's latest checkpoint and the outcome to resume with."""
        path = f"/threads/{quote(thread, safe='')}/checkpoint"
        return Resume.parse(self._call("GET", path))

    def resume(self, thread: str, timeout: float = 300.0) -> Resume:
        """The same, and wait for the outcome if there is none to act upon yet: what an
        agent calls when it comes back, as often as it comes back. Look at `due`: after
        `timeout` seconds, or when a person gave it back, there may be none still."""
        found = self.checkpoint(thread)
        if found.outcome is None or found.outcome.outcome:
            return found
        now = self.wait(found.outcome.id, timeout)
        return replace(found, outcome=now, acknowledged=now.acknowledged)

    def acknowledge(self, proposal: Proposal) -> Proposal:
        """Say that this outcome was taken, so that it is not offered again.

        Say it after your own work is kept together with `proposal.outcome`: whoever
        crashes in between finds the outcome offered again, and the note of it too.
        Raises ValueError for one that has no outcome yet.
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
