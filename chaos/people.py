"""Reviewers and supervisors, who decide at whichever web process lives.

They look at the queue by the people's API and give the verdict that the name of the
thread calls for. Some things need a signed-in session: pages, and verdicts with a fresh
password.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from world.cast import PASSWORD
from world.database import Ledger
from world.people import Request, Session, build_verdict, list_requests

from .balancer import Balancer
from .generator import read_thread
from .history import History
from .services import Effect

LOOK_S = 0.3  # between two looks
# A sign-in whose answer was lost: not the last word on what was asked.
SIGNED_OUT = {302, 401, 403}
LATER = 429


@dataclass
class DeskUser:
    """One person in a thread of their own."""

    name: str
    token: str
    addresses: Sequence[str]
    history: History
    stopping: threading.Event
    done: set[str] = field(default_factory=set)
    seen: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.session = Session(self.name, PASSWORD)
        self.balancer = Balancer(self.addresses, self.history)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx2.Client(headers=headers, trust_env=False, timeout=15)

    def work(self) -> None:
        while not self.stopping.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:
                self.history.count(f"{self.name}: {type(error).__name__}")

    def look(self) -> None:
        raise NotImplementedError

    def api(self, method: str, path: str, **body: Any) -> httpx2.Response:
        """Raises httpx2.HTTPError; a lost answer is asked for again, for a verdict
        counts once."""
        url = f"/api/v1{path}"
        return self._ask(path, lambda at: self.http.request(method, at + url, **body))

    def page(self, path: str, **body: Any) -> httpx2.Response:
        """Post a form, or JSON with `json=`, in a session."""
        return self._ask(path, lambda at: self.session.post(at, path, **body))

    def see(self, path: str) -> str:
        return self._ask(path, lambda at: self.session.get(at, path)).text

    def _ask(
        self, path: str, call: Callable[[str], httpx2.Response]
    ) -> httpx2.Response:
        return self.balancer.ask(
            "person", path, lambda web: _check(call(self.addresses[web]))
        )

    def try_once(self, send: Callable[..., object], *args: Any, **body: Any) -> bool:
        """Whether there is nothing more to say to this: a refusal may be the last word,
        for decided already is as good. Who was signed out signs in again."""
        try:
            send(*args, **body)
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            self.history.count(f"person: {status}")
            if status in SIGNED_OUT:
                self.session.leave()
                return False
            return status < 500 and status != LATER
        return True

    def list_new(self) -> list[tuple[str, Request]]:
        """The versions of requests that this person has not dealt with, each with what
        to remember it by."""
        requests = list_requests(self.api, limit=100)
        marked = [(f"{row['id']} {row['version']}", row) for row in requests]
        return [(mark, row) for mark, row in marked if mark not in self.done]

    def is_first_seen_within(self, subject: str, seconds: float) -> bool:
        now = time.monotonic()
        return now < self.seen.setdefault(subject, now) + seconds


def _check(answer: httpx2.Response) -> httpx2.Response:
    """Pages answer a form with a redirect. Raises HTTPStatusError for a refusal, and
    for who is led to the sign-in, whose address may say where they wanted to go."""
    to = answer.headers.get("location", "").partition("?")[0]
    if answer.status_code >= 400 or to == "/sign-in/":
        raise httpx2.HTTPStatusError(
            f"{answer.status_code}", request=answer.request, response=answer
        )
    return answer


ALONE_S = 12.0  # after which what should be in a batch is decided alone
GATHERED_S = 3.0  # that a batch may wait for more
SHY = {"expire", "withdraw"}  # nobody answers these
BOTH = 7  # of so many requests one is decided by two people at once


@dataclass
class Reviewer(DeskUser):
    """Decides every second request; some are decided by two reviewers at once."""

    place: int = 0
    failed: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    def look(self) -> None:
        self._retry()
        for mark, request in self.list_new():
            number, kind = read_thread(request["thread"])
            if kind in SHY or not request["can_decide"]:
                continue
            if number % BOTH and number % 2 != self.place:
                continue
            if kind == "batch" and self.is_first_seen_within(request["id"], ALONE_S):
                continue
            if self._answer(request, number, kind):
                self.done.add(mark)
        if self.place == 0:
            self._decide_batches()

    def _answer(self, request: Request, number: int, kind: str) -> bool:
        if kind == "stop" and number % 2:
            return True  # left to who stops it
        verdict = build_verdict(request, "approve")
        if kind == "reject" or (kind == "recall" and request["version"] > 1):
            verdict |= {"verdict": "reject", "reason_code": "wrong_amount"}
        if kind == "edit":
            args = {**request["args"], "amount": "5.00"}
            verdict |= {
                "verdict": "modify",
                "args": args,
                "reason_code": "wrong_amount",
            }
        path = f"/requests/{request['id']}"
        done = self.try_once(self.api, "POST", f"{path}/decide", json=verdict)
        if done and kind == "recall" and request["version"] == 1:
            self.try_once(self.page, f"{path}/recall/", data={})
        return done

    def _decide_batches(self) -> None:
        for row in self.api("GET", "/batches").json()["items"]:
            if row["status"] != "open" or row["id"] in self.done:
                continue
            batch = self.api("GET", f"/batches/{row['id']}").json()
            if self.is_first_seen_within(batch["id"], GATHERED_S):
                continue
            inside = [m for m in batch["items"] if m["status"] == "pending"]
            verdict = {
                "digest": batch["digest"],
                "items": [member["entry"]["request"] for member in inside],
                "verdict": "approve",
                "stop_at_failure": False,
            }
            path = f"/batches/{row['id']}/decide"
            if self.try_once(self.api, "POST", path, json=verdict):
                self.done.add(row["id"])

    def _retry(self) -> None:
        """What the service declined once is let run again."""
        waiting = set()
        while not self.failed.empty():
            waiting.add(self.failed.get())
        for request in waiting:
            self.try_once(self.page, f"/requests/{request}/retry/", data={})


UNKNOWN = re.compile(r"/unknown/(x-[a-z0-9]+)/")
SETTLED = 2  # of so many unknown effects one is settled


@dataclass
class Supervisor(DeskUser):
    """What takes a session; one of the two also stops and settles."""

    ledger: Ledger | None = None

    def look(self) -> None:
        for mark, request in self.list_new():
            _, kind = read_thread(request["thread"])
            if kind == "escalate" and request["can_decide"] and self._vote(request):
                self.done.add(mark)
            if kind == "stop" and self.ledger and self._stop(request):
                self.done.add(mark)
        if self.ledger is not None:
            self._settle(self.ledger)

    def _vote(self, request: Request) -> bool:
        verdict = build_verdict(
            request, "approve", reason_code="verified", password=PASSWORD
        )
        path = f"/api/v1/requests/{request['id']}/decide"
        return self.try_once(self.page, path, json=verdict)

    def _stop(self, request: Request) -> bool:
        thread = f"{request['agent']}/{request['thread']}"
        form = {"target": f"thread:{thread}", "mode": "stopped", "reason_code": "wrong"}
        return self.try_once(self.page, f"/threads/{thread}/stop/", data=form)

    def _settle(self, ledger: Ledger) -> None:
        """Settle half of the unknown effects, as the service's ledger says."""
        for execution in set(UNKNOWN.findall(self.see("/unknown/"))) - self.done:
            self.done.add(execution)
            if sum(map(ord, execution)) % SETTLED:
                continue
            happened = "yes" if ledger.load(Effect, execution=execution) else "no"
            form = {"happened": happened, "reason": "by the service's books"}
            self.try_once(self.page, f"/unknown/{execution}/", data=form)
